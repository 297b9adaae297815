"""Islands are searched at their edges, and only presumed to be whole."""

from __future__ import annotations

from capdoctor.bisection.search.islands import (
    Stretch,
    edge_cut,
    inner_cut,
    scattered_labels,
    stretches,
)
from capdoctor.bisection.search.window import Window

NOTHING = frozenset[int]()


def test_neighbours_with_one_label_are_one_island() -> None:
    assert stretches({3: "a", 9: "a"}) == [Stretch(3, 9, "a")]


def test_other_labels_are_islands_of_their_own() -> None:
    assert stretches({3: "a", 5: "b", 9: "a"}) == [
        Stretch(3, 3, "a"),
        Stretch(5, 5, "b"),
        Stretch(9, 9, "a"),
    ]


def test_a_judged_commit_between_separates_islands() -> None:
    assert stretches({3: "a", 9: "a"}, frozenset({5})) == [Stretch(3, 3, "a"), Stretch(9, 9, "a")]


def test_a_label_met_in_two_places_is_scattered() -> None:
    assert scattered_labels({3: "a", 9: "a", 7: "b"}, frozenset({5})) == {"a"}
    assert scattered_labels({3: "a", 9: "a"}, NOTHING) == NOTHING


def test_an_island_is_not_walked() -> None:
    cut = edge_cut(Window(0, 512, None, {256: "x"}))
    assert cut is not None
    assert abs(cut - 256) > 32


def test_what_lies_between_two_of_a_kind_is_left_for_the_end() -> None:
    view = Window(0, 40, None, {10: "x", 30: "x"})
    cut = edge_cut(view)
    assert cut is not None
    assert not 10 <= cut <= 30


def test_with_the_edges_known_the_largest_gap_is_looked_into() -> None:
    view = Window(9, 31, None, {10: "x", 14: "x", 30: "x"})
    assert edge_cut(view) is None
    assert inner_cut(view) == 22


def test_a_well_probed_island_is_left_alone() -> None:
    inside = dict.fromkeys(range(10, 51, 5), "x")
    view = Window(9, 51, None, inside)
    assert edge_cut(view) is None
    assert inner_cut(view) is None


def test_a_small_island_is_tried_whole() -> None:
    assert inner_cut(Window(9, 13, None, {10: "x", 12: "x"})) == 11


def test_a_scattered_label_is_looked_into_more_closely() -> None:
    inside = dict.fromkeys(range(10, 51, 5), "x")
    view = Window(9, 51, None, inside, frozenset({"x"}))
    assert inner_cut(view) is not None
