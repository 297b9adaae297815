"""Runs around a fault: which do not count, and who has to prove that its device works."""

from __future__ import annotations

import pytest

from capdoctor.bisection.journal.story import Run
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.suspicion import CONTROL, Suspicion, suspicion

FAULT = Observation(Saw.CRASH, "s1:a", sticky=True)
SUSPECT = Observation(Saw.CRASH, "s1:b", suspect=True)
PLAIN = Observation(Saw.CRASH, "s1:a")
CLEAN = Observation(Saw.CLEAN)
BROKEN = Observation(Saw.INFRA)


def story(*seen: Observation | tuple[str, Observation], worker: int = 0) -> tuple[Run, ...]:
    return tuple(
        Run("c", *one, worker=worker)
        if isinstance(one, tuple)
        else Run("c", "search", one, 0.0, worker)
        for one in seen
    )


def control(seen: Observation) -> tuple[str, Observation]:
    return (CONTROL, seen)


@pytest.mark.parametrize(
    ("runs", "due_later", "due_at_once"),
    [
        (story(PLAIN, PLAIN), None, None),
        (story(CLEAN), None, None),
        (story(FAULT), None, 0),
        (story(SUSPECT), None, 0),
        (story(FAULT, CLEAN), None, 0),
        (story(FAULT, PLAIN), 0, 0),
        (story(FAULT, control(CLEAN)), None, None),
        (story(FAULT, PLAIN, control(CLEAN)), None, None),
        (story(FAULT, control(BROKEN)), 0, 0),
        (story(FAULT, control(BROKEN), control(CLEAN)), None, None),
        (story(FAULT, worker=3), None, 3),
    ],
)
def test_who_is_due_for_a_control(
    runs: tuple[Run, ...], due_later: int | None, due_at_once: int | None
) -> None:
    assert suspicion(runs).worker == due_later
    assert suspicion(runs, at_once=True).worker == due_at_once


@pytest.mark.parametrize(
    ("runs", "uncounted", "before_broken"),
    [
        (story(FAULT, PLAIN), {1}, set()),
        (story(FAULT, CLEAN, PLAIN), set(), set()),
        (story(FAULT, PLAIN, control(CLEAN)), set(), set()),
        (story(FAULT, PLAIN, control(BROKEN)), {1}, {1}),
        (story(FAULT, control(BROKEN)), set(), {0}),
        (story(FAULT, control(BROKEN), control(CLEAN)), set(), {0}),
        (story(FAULT, control(CLEAN), PLAIN), set(), set()),
    ],
)
def test_what_does_not_count(
    runs: tuple[Run, ...], uncounted: set[int], before_broken: set[int]
) -> None:
    found = suspicion(runs)
    assert (found.uncounted, found.before_broken) == (uncounted, before_broken)
    assert found.doubtful == uncounted | before_broken


def test_a_fault_of_one_worker_is_no_suspicion_of_another() -> None:
    runs = (*story(FAULT, worker=1), *story(PLAIN, worker=2))
    assert suspicion(runs) == Suspicion(frozenset())
