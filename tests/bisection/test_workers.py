"""Who runs the tasks."""

from __future__ import annotations

import threading

import pytest

from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.probe import Cancelled
from capdoctor.bisection.search.case import Purpose
from capdoctor.bisection.workers import Crew, OneWorker, Task, workers_for

SEEN = Observation(Saw.CLEAN)


def _task(position: int, purpose: Purpose = Purpose.SEARCH) -> Task:
    return Task(f"c{position}", purpose, position)


def test_one_worker_runs_in_the_calling_thread() -> None:
    threads: list[threading.Thread] = []

    def run(_task: Task, _worker: int) -> Observation:
        threads.append(threading.current_thread())
        return SEEN

    worker = workers_for(run, 1)
    assert isinstance(worker, OneWorker)
    worker.take(_task(3))
    assert (worker.free, worker.in_flight) == (0, (3,))
    assert worker.next_done()[1:] == (0, SEEN)
    assert threads == [threading.current_thread()]


def test_a_crew_gives_back_whoever_is_done_first_and_keeps_workers_apart() -> None:
    gate = threading.Event()

    def run(task: Task, _worker: int) -> Observation:
        if task.position == 1:
            gate.wait(20)
        return SEEN

    crew = Crew(run, 2)
    crew.take(_task(1))
    crew.take(_task(2))
    first, worker, _ = crew.next_done()
    assert (first.position, worker, crew.free, crew.in_flight) == (2, 1, 1, (1,))
    gate.set()
    assert crew.next_done()[1] == 0
    crew.close()


def test_a_named_worker_takes_the_task() -> None:
    crew = Crew(lambda _task, _worker: SEEN, 3)
    crew.take(_task(1, Purpose.CONFIRM), worker=2)
    assert crew.next_done()[1] == 2
    crew.close()


def test_runs_that_cannot_matter_any_more_are_cancelled_and_leave_nothing() -> None:
    def run(task: Task, _worker: int) -> Observation:
        if task.cancelled.wait(20):
            raise Cancelled
        return SEEN

    crew = Crew(run, 3)
    for position, purpose in ((10, Purpose.SEARCH), (50, Purpose.SEARCH), (90, Purpose.CONFIRM)):
        crew.take(_task(position, purpose))
    crew.cancel_outside(40, 80)
    task, _, seen = crew.next_done()
    assert (task.position, seen) == (10, None)
    assert sorted(crew.in_flight) == [50, 90]
    crew.close()


def test_what_a_run_raises_reaches_the_caller() -> None:
    def run(_task: Task, _worker: int) -> Observation:
        raise OSError("disk")

    crew = Crew(run, 2)
    crew.take(_task(1))
    with pytest.raises(OSError, match="disk"):
        crew.next_done()
    crew.close()
