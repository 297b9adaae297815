"""Runs and minutes to go."""

from __future__ import annotations

from capdoctor.bisection.estimate import minutes_left, runs_left, switch_cost
from capdoctor.bisection.journal.story import Run
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.search.case import Case, Settings
from tests.bisection.simulated import Made, bisect_made, seeded


def _run(seconds: float, setup: float) -> Run:
    return Run("a", "search", Observation(Saw.CLEAN, seconds=seconds, setup_seconds=setup))


def test_a_plain_bisection_is_foretold_exactly() -> None:
    log = bisect_made(Made(256, 77), seeded(1))
    for done in range(len(log.seen)):
        left = runs_left(Case(256, tuple(log.seen[:done])))
        assert abs(left - (log.runs - done)) <= 1


def test_a_flaky_one_roughly() -> None:
    settings = Settings(known_flaky=True)
    log = bisect_made(Made(256, 77, rate=0.5), seeded(2), settings=settings)
    left = runs_left(Case(256, tuple(log.seen[:8]), settings=settings))
    assert 0.3 < left / (log.runs - 8) < 3


def test_minutes_come_from_measured_runs() -> None:
    runs = [_run(25, 5), _run(85, 5)]
    assert minutes_left(6, runs, workers=1) == 6.0
    assert minutes_left(6, runs, workers=3) == 2.0
    assert minutes_left(6, [], workers=1) is None


def test_changing_the_commit_is_priced_in_runs() -> None:
    assert switch_cost([_run(10, 5), _run(10, 5)]) == 0.5
    assert switch_cost([]) == 1.0
    assert switch_cost([_run(0.001, 60)]) == 5.0
