"""The range in one line."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.bisection.picture import LEGEND, picture
from capdoctor.bisection.search.evidence import Mark, Seen

CRASH, CLEAN, SKIP = Mark.CRASH, Mark.CLEAN, Mark.SKIP


def test_before_anything_is_known_all_are_candidates() -> None:
    assert picture(7, []) == ".???????"


def test_verdicts_islands_and_candidates_show() -> None:
    seen = [Seen(15, CRASH), Seen(0, CLEAN), Seen(4, SKIP, "s1:a"), Seen(7, SKIP, "s1:a")]
    seen += [Seen(10, SKIP, "unbuildable x"), Seen(13, CRASH)]
    assert picture(15, seen) == "+???o~~o??x??#.#"


def test_a_long_range_keeps_what_is_rare() -> None:
    drawn = picture(10_000, [Seen(0, CLEAN), Seen(10_000, CRASH), Seen(5000, CLEAN)], 40)
    assert len(drawn) == 40
    assert drawn.count("+") == 2
    assert drawn[-1] == "#"


@settings(deadline=None)
@given(st.integers(1, 300), st.lists(st.tuples(st.integers(0, 300), st.sampled_from(Mark))))
def test_any_state_can_be_drawn(size: int, runs: list[tuple[int, Mark]]) -> None:
    drawn = picture(size, [Seen(at, mark, "x") for at, mark in runs if at <= size])
    assert len(drawn) == min(60, size + 1)
    assert all(mark in LEGEND for mark in set(drawn))
