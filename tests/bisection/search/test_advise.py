"""The whole search, on made-up histories."""

from __future__ import annotations

import pytest

from capdoctor.bisection.search.advise import advise
from capdoctor.bisection.search.case import Case, End, Ending, Purpose, Runs, Settings
from capdoctor.bisection.search.evidence import Mark, Seen
from tests.bisection.simulated import Made, bisect_made, seeded

CRASH, CLEAN, SKIP = Mark.CRASH, Mark.CLEAN, Mark.SKIP
ONCE = Settings(confirm=1)


def _step(size: int, *seen: Seen, **options: object) -> Runs | End:
    return advise(Case(size, seen, **options))  # type: ignore[arg-type]


def _ends(size: int) -> tuple[Seen, Seen]:
    return Seen(size, CRASH), Seen(0, CLEAN)


def test_the_bad_end_is_run_first() -> None:
    assert _step(8) == Runs(Purpose.BAD_END, (8,))


def test_two_workers_run_both_ends_at_once() -> None:
    assert _step(8, free=2) == Runs(Purpose.BAD_END, (8, 0))


def test_a_bad_end_that_does_not_crash_at_first_is_run_again() -> None:
    assert _step(8, Seen(8, CLEAN)) == Runs(Purpose.BAD_END, (8,))


def test_a_bad_end_that_never_crashes_has_no_culprit() -> None:
    step = _step(8, *[Seen(8, CLEAN)] * 5)
    assert isinstance(step, End)
    assert step.ending is Ending.BAD_END_CLEAN


def test_a_good_end_that_crashes_alike_ends_it() -> None:
    step = _step(8, Seen(8, CRASH), Seen(0, CRASH))
    assert isinstance(step, End)
    assert step.ending is Ending.CLEAN_END_CRASHES


def test_a_crash_of_the_good_end_says_nothing_before_the_bad_end_has_crashed() -> None:
    step = _step(8, Seen(0, CRASH), in_flight=(8,))
    assert step == Runs(Purpose.BAD_END)


@pytest.mark.parametrize("end", [0, 8])
def test_an_end_that_cannot_be_judged_is_said_after_a_second_try(end: int) -> None:
    others = () if end else (Seen(8, CRASH),)
    once = _step(8, *others, Seen(end, SKIP, "x"))
    assert isinstance(once, Runs)
    assert once.positions == (end,)
    twice = _step(8, *others, *[Seen(end, SKIP, "x")] * 2)
    assert isinstance(twice, End)
    assert twice.ending is Ending.END_UNTESTABLE


def test_runs_of_the_search_count_for_confirmation() -> None:
    seen = [*_ends(2), Seen(1, CRASH)]
    wanted: list[int] = []
    while isinstance(step := _step(2, *seen), Runs):
        wanted += step.positions
        seen += [Seen(at, CRASH if at else CLEAN) for at in step.positions]
    assert sorted(wanted) == [0, 0, 1, 1]
    assert (step.ending, step.lo, step.hi) == (Ending.FOUND, 0, 1)


def test_one_and_one_confirmation_is_free() -> None:
    step = _step(2, *_ends(2), Seen(1, CRASH), settings=ONCE)
    assert isinstance(step, End)
    assert (step.ending, step.hi) == (Ending.FOUND, 1)


def test_a_culprit_next_to_untestable_commits_is_a_range() -> None:
    seen = [*_ends(4), Seen(2, SKIP, "x"), Seen(1, CLEAN), Seen(3, CRASH)]
    step = _step(4, *seen)
    assert isinstance(step, End)
    assert (step.ending, step.lo, step.hi) == (Ending.RANGE, 1, 3)


def test_a_second_transition_is_rechecked_then_said_and_the_newest_one_is_finished() -> None:
    seen = [*_ends(16), Seen(4, CRASH), Seen(8, CLEAN)]
    assert _step(16, *seen) == Runs(Purpose.RECHECK, (8,))
    made = Made(16, 3, healed=((6, 10),))
    while isinstance(step := _step(16, *seen), Runs):
        seen += [made.run(at, seeded(0)) for at in step.positions]
    assert (step.ending, step.lo, step.hi) == (Ending.FOUND, 10, 11)
    assert (4, 8) in step.older


def test_a_clean_run_that_crashes_when_repeated_makes_it_flaky() -> None:
    seen = [*_ends(16), Seen(4, CRASH), Seen(8, CLEAN), Seen(8, CRASH)]
    step = _step(16, *seen)
    assert isinstance(step, Runs)
    assert step.purpose in (Purpose.SEARCH, Purpose.CONFIRM)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 300])
def test_every_culprit_of_a_plain_history_is_found_in_log2_runs(size: int) -> None:
    rng = seeded(size)
    for culprit in {1, size, *(rng.randint(1, size) for _ in range(8))}:
        log = bisect_made(Made(size, culprit), rng, settings=ONCE)
        assert (log.end.ending, log.end.hi) == (Ending.FOUND, culprit)
        assert log.runs <= 2 + (size - 1).bit_length()


def test_confirmation_adds_four_runs() -> None:
    rng = seeded(1)
    plain = bisect_made(Made(256, 77), rng, settings=ONCE)
    full = bisect_made(Made(256, 77), rng)
    assert full.runs == plain.runs + 4


@pytest.mark.parametrize(("workers", "rounds"), [(1, 9), (2, 6), (3, 5), (4, 4), (7, 3), (8, 3)])
def test_workers_save_rounds(workers: int, rounds: int) -> None:
    rng = seeded(workers)
    for _ in range(10):
        log = bisect_made(Made(512, rng.randint(1, 512)), rng, settings=ONCE, workers=workers)
        assert log.end.ending is Ending.FOUND
        ends = 1 if workers > 1 else 2
        assert log.rounds <= rounds + ends


def test_a_free_worker_takes_the_middle_of_the_largest_gap() -> None:
    step = _step(100, *_ends(100), in_flight=(25,))
    assert step == Runs(Purpose.SEARCH, (62,))


def test_with_everything_in_flight_it_waits() -> None:
    assert _step(2, *_ends(2), in_flight=(1,)) == Runs(Purpose.SEARCH)


def test_nothing_is_remembered_between_calls() -> None:
    """A resumed bisection is the same function of the same runs."""
    seen = [*_ends(64), Seen(32, CLEAN), Seen(48, SKIP, "x")]
    assert _step(64, *seen) == _step(64, *reversed(seen))


@pytest.mark.parametrize("workers", [1, 3])
def test_of_a_crash_that_came_went_and_came_again_a_true_beginning_is_named(workers: int) -> None:
    rng = seeded(11)
    for _ in range(60):
        culprit = rng.randint(1, 40)
        first = rng.randint(culprit + 1, 55)
        last = rng.randint(first, 60)
        made = Made(64, culprit, healed=((first, last),))
        end = bisect_made(made, rng, workers=workers).end
        assert end.ending is Ending.FOUND
        assert end.hi in (culprit, last + 1)
