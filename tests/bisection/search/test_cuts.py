"""The next cut: binary search without clues, a limit with them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.bisection.search.cuts import bits, most_runs, next_cut
from capdoctor.bisection.search.window import Window


def _worst_case(size: int, weights: tuple[float, ...] | None) -> int:
    """Return the most runs that any culprit of a list takes."""
    limit = most_runs(size)

    def depth(lo: int, hi: int, spent: int) -> int:
        part = None if weights is None else weights[lo:hi]
        cut = next_cut(Window(lo, hi, part), spent, limit)
        if cut is None:
            assert hi - lo == 1
            return spent
        assert lo < cut < hi
        return max(depth(lo, cut, spent + 1), depth(cut, hi, spent + 1))

    return depth(0, size, 0)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 31, 64, 100, 257])
def test_without_clues_it_is_binary_search(size: int) -> None:
    assert _worst_case(size, None) == bits(size)


def test_without_clues_the_middle_is_cut() -> None:
    assert next_cut(Window(0, 512), 0, most_runs(512)) == 256
    assert next_cut(Window(100, 103), 3, most_runs(512)) == 101


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=90))
def test_with_any_prior_no_culprit_takes_more_than_two_runs_over_binary_search(
    weights: list[float],
) -> None:
    assert _worst_case(len(weights), tuple(weights)) <= math.ceil(math.log2(len(weights))) + 2


@pytest.mark.parametrize("size", [2, 5, 64, 100])
def test_a_flat_prior_keeps_to_the_same_limit(size: int) -> None:
    assert _worst_case(size, (1.0,) * size) <= bits(size) + 2


def test_a_prior_that_is_sure_and_right_is_done_in_two_runs() -> None:
    weights = tuple(0.9 if at == 700 else 0.1 / 1023 for at in range(1024))
    view = Window(0, 1024, weights)
    first = next_cut(view, 0, most_runs(1024))
    assert first in (700, 701)
    second = next_cut(view.part(0, 701) if first == 701 else view.part(700, 1024), 1, 12)
    assert second in (700, 701)


def test_a_window_of_one_has_nothing_to_cut() -> None:
    assert next_cut(Window(4, 5), 3, 10) is None


@pytest.mark.parametrize(("candidates", "wanted"), [(0, 0), (1, 0), (2, 1), (3, 2), (1024, 10)])
def test_bits(candidates: int, wanted: int) -> None:
    assert bits(candidates) == wanted
