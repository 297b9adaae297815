"""Clues to weights."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.bisection.prior.mix import Clues, weigh


def _sets(*groups: tuple[int, ...]) -> tuple[frozenset[int], ...]:
    return tuple(frozenset(group) for group in groups)


def test_without_a_clue_all_candidates_are_alike() -> None:
    assert weigh(Clues(5)) is None
    assert weigh(Clues(5, files=_sets(()), functions=_sets(()))) is None


def test_the_innermost_file_weighs_most() -> None:
    weights = weigh(Clues(10, files=_sets((2,), (7,))))
    assert weights is not None
    assert weights[2] > weights[7] > weights[0]


def test_who_wrote_the_line_beats_who_touched_the_file() -> None:
    weights = weigh(Clues(10, files=_sets((2, 3)), functions=_sets((2, 3)), lines=_sets((3,))))
    assert weights is not None
    assert weights[3] > weights[2]


def test_a_file_that_everybody_touches_says_less() -> None:
    weights = weigh(Clues(40, files=_sets((1,), tuple(range(10, 40)))))
    assert weights is not None
    assert weights[1] > 20 * weights[12]


def test_a_commit_of_many_files_weighs_less() -> None:
    sizes = [1] * 10
    sizes[4] = 100
    weights = weigh(Clues(10, files=_sets((3, 4)), python_files=sizes))
    assert weights is not None
    assert weights[3] > 3 * weights[4]


def test_native_sources_behind_a_frame_count_too() -> None:
    weights = weigh(Clues(10, files=_sets((3,)), native=_sets((8,))))
    assert weights is not None
    assert weights[3] > weights[8] > weights[0]


def test_a_moved_pin_is_a_suspect_even_without_a_traceback() -> None:
    weights = weigh(Clues(10, moved_pins=frozenset({6}), pin_share=0.5))
    assert weights is not None
    assert weights[6] > 0.5


@settings(deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda count: st.builds(
            Clues,
            st.just(count),
            st.lists(st.frozensets(st.integers(0, count - 1)), max_size=4),
            st.lists(st.frozensets(st.integers(0, count - 1)), max_size=4),
            st.lists(st.frozensets(st.integers(0, count - 1), max_size=1), max_size=4),
            st.lists(st.frozensets(st.integers(0, count - 1)), max_size=3),
            st.lists(st.integers(0, 9), min_size=count, max_size=count),
        )
    )
)
def test_weights_add_up_and_nobody_is_ruled_out(clues: Clues) -> None:
    weights = weigh(clues)
    if weights is None:
        assert clues.empty
        return
    assert sum(weights) == pytest.approx(1.0)
    assert min(weights) >= 0.14 / clues.count
