"""Who runs the probes: this thread, or several that each have their own worktree and devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Protocol

from capdoctor.bisection.observation import Observation
from capdoctor.bisection.probes.probe import Cancelled
from capdoctor.bisection.search.case import Purpose


@dataclass(frozen=True, slots=True)
class Task:
    """A run to be made: a commit, why, and at which position of the line.

    ``cancelled`` is set when its verdict is of no use any more.
    """

    sha: str
    purpose: str
    position: int
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)


RunTask = Callable[[Task, int], Observation]
Done = tuple[Task, int, Observation | None]


class Workers(Protocol):
    """Takes tasks while ``free``, and gives back what was seen, first come first served."""

    @property
    def free(self) -> int:
        """How many tasks can be taken."""
        ...

    @property
    def in_flight(self) -> tuple[int, ...]:
        """The positions of the tasks that were taken and not given back."""
        ...

    def take(self, task: Task, worker: int | None = None) -> None:
        """Start a task, on this worker if one is named and idle."""
        ...

    def next_done(self) -> Done:
        """Wait for a task to end: the task, its worker, what it saw (None if cancelled)."""
        ...

    def cancel_outside(self, lo: int, hi: int) -> None:
        """Cancel the searching runs whose verdict cannot matter any more: outside (lo, hi)."""
        ...

    def close(self) -> None:
        """Cancel what is still running, and wait until it is gone."""
        ...


class OneWorker:
    """Runs a task when its result is asked for, in the calling thread."""

    def __init__(self, run: RunTask) -> None:
        self._run = run
        self._task: Task | None = None

    @property
    def free(self) -> int:
        """One, unless a task waits."""
        return 0 if self._task else 1

    @property
    def in_flight(self) -> tuple[int, ...]:
        """The position of the waiting task."""
        return (self._task.position,) if self._task else ()

    def take(self, task: Task, worker: int | None = None) -> None:  # noqa: ARG002 - one is enough
        """Keep the task until its result is asked for."""
        self._task = task

    def next_done(self) -> Done:
        """Run the task."""
        task, self._task = self._task, None
        if task is None:
            raise RuntimeError("no task was taken")
        return task, 0, self._run(task, 0)

    def cancel_outside(self, lo: int, hi: int) -> None:
        """Nothing runs while somebody could ask for it."""

    def close(self) -> None:
        """Nothing runs."""
        self._task = None


class Crew:
    """Several threads; a free one takes the next task."""

    def __init__(self, run: RunTask, workers: int) -> None:
        self._run = run
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="bisect")
        self._idle = list(range(workers))
        self._flying: dict[Future[Observation], tuple[Task, int]] = {}

    @property
    def free(self) -> int:
        """How many threads wait for a task."""
        return len(self._idle)

    @property
    def in_flight(self) -> tuple[int, ...]:
        """The positions that are being run."""
        return tuple(task.position for task, _ in self._flying.values())

    def take(self, task: Task, worker: int | None = None) -> None:
        """Hand the task to an idle worker."""
        chosen = worker if worker in self._idle else self._idle[0]
        self._idle.remove(chosen)
        self._flying[self._pool.submit(self._run, task, chosen)] = (task, chosen)

    def next_done(self) -> Done:
        """Wait for the first worker to be done."""
        done, _ = wait(self._flying, return_when=FIRST_COMPLETED)
        future = done.pop()
        task, worker = self._flying.pop(future)
        self._idle.append(worker)
        try:
            return task, worker, future.result()
        except Cancelled:
            return task, worker, None

    def cancel_outside(self, lo: int, hi: int) -> None:
        """Ask the runs in question to end; they come back through ``next_done``."""
        for task, _ in self._flying.values():
            if task.purpose == Purpose.SEARCH and not lo < task.position < hi:
                task.cancelled.set()

    def close(self) -> None:
        """Wait for the threads: what they started must be gone before we are."""
        for task, _ in self._flying.values():
            task.cancelled.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


def workers_for(run: RunTask, count: int) -> Workers:
    """Return as many workers as asked for."""
    return OneWorker(run) if count <= 1 else Crew(run, count)
