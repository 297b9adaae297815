"""Signals taken over and given back."""

from __future__ import annotations

import os
import select
import signal
import threading

import pytest

from capdoctor.engines.interrupts import Interrupts
from capdoctor.errors import Interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_noted_and_everything_comes_back(number: signal.Signals) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Interrupts() as interrupts, interrupts.noted():
        assert interrupts.caught is None
        os.kill(os.getpid(), number)
        assert select.select([interrupts.descriptor], [], [], 5)[0]
        assert interrupts.caught is number
    after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert before == after


def test_the_first_signal_is_the_one_that_counts() -> None:
    with Interrupts() as interrupts, interrupts.noted():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.caught is signal.SIGTERM


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interrupts.caught is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_come_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), Interrupts():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_nothing_is_taken_over() -> None:
    seen: list[object] = []

    def look() -> None:
        with Interrupts() as interrupts:
            seen.append(interrupts.caught)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [None]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_where_nobody_looks_a_signal_is_raised_with_the_line_that_resumes(
    number: signal.Signals,
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match=number.name) as caught, Interrupts("capdoctor x"):
        os.kill(os.getpid(), number)
    assert caught.value.hint == "capdoctor x"
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_cut_a_clean_up_short() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.caught is signal.SIGINT


def test_a_signal_that_was_noted_can_be_raised_later() -> None:
    with Interrupts("again") as interrupts:
        interrupts.check()
        with interrupts.noted():
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"):
            interrupts.check()
