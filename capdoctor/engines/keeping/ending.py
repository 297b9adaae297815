"""Ending every process of a run. Standard library only."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from .processes import Gone, Seen, Tree

_LOOK_AGAIN = 0.05
_STACKS_SECONDS = 1.5
_TRACKER_SECONDS = 3.0
_KILL_ROUNDS = 20

Which = Callable[[], list[Seen]]
Told = Callable[[Gone], None]


@dataclass(frozen=True, slots=True)
class EndOrder:
    """How to end: seconds between request and SIGKILL; ``stacks``: have Python print them first."""

    grace: float
    stacks: bool = False


def end_all(tree: Tree, order: EndOrder, told: Told) -> list[int]:
    """End every process and return the numbers of those that will not die (stuck in the kernel).

    First a request and ``grace`` seconds, then SIGKILL. The resource trackers come last: they
    unlink the shared memory of the others once those are gone.
    """
    tree.scan(strays=True)
    if order.stacks:
        _signal(tree.others(), signal.SIGABRT)  # Python's faulthandler prints every thread
        _wait(tree, tree.others, _STACKS_SECONDS, told)
    if order.grace > 0:
        _signal(tree.others(), signal.SIGTERM)
        _signal(tree.others(), signal.SIGCONT)  # a stopped process cannot hear
        _wait(tree, tree.others, order.grace, told)
    _kill(tree, tree.others, told)
    _wait(tree, tree.everyone, _TRACKER_SECONDS, told)
    _kill(tree, tree.everyone, told)
    return sorted(tree.pids())


def _kill(tree: Tree, which: Which, told: Told) -> None:
    for _ in range(_KILL_ROUNDS):  # a process may fork while it is being killed
        tree.scan(strays=True)
        if not which():
            return
        _signal(which(), signal.SIGKILL)
        _wait(tree, which, 0.5, told)


def _wait(tree: Tree, which: Which, seconds: float, told: Told) -> None:
    deadline = time.monotonic() + seconds
    while True:
        for gone in tree.notice_deaths(set()):
            told(gone)
        if not which() or time.monotonic() > deadline:
            return
        time.sleep(_LOOK_AGAIN)
        tree.scan()


def _signal(targets: list[Seen], number: signal.Signals) -> None:
    for seen in targets:
        try:
            if seen.pidfd >= 0:
                signal.pidfd_send_signal(seen.pidfd, number)
            else:
                os.kill(seen.pid, number)
        except OSError:
            continue  # gone already, or not ours to signal
