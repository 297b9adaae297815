"""Mappings inside mappings."""

from __future__ import annotations

from capdoctor.engines.nested import differences, merged, replaced, without


def test_what_is_above_wins_leaf_by_leaf() -> None:
    below = {"a": 1, "in": {"x": 1, "y": [1, 2]}}
    assert merged(below, {"in": {"y": [3]}, "b": 2}) == {"a": 1, "in": {"x": 1, "y": [3]}, "b": 2}
    assert merged(below, {"in": 5}) == {"a": 1, "in": 5}
    assert below == {"a": 1, "in": {"x": 1, "y": [1, 2]}}


def test_leaves_are_taken_away_and_empty_mappings_with_them() -> None:
    values = {"a": 1, "in": {"x": 1}, "also": {"y": 1, "z": 2}}
    assert without(values, {"in": {"x": 9}, "also": {"z": 0}}) == {"a": 1, "also": {"y": 1}}
    assert without(values, {}) == values


def test_only_named_mappings_merge() -> None:
    full = {"text": {"depth": 9, "width": 4}, "lists": {"old": 1}}
    changed = {"text": {"depth": 2}, "lists": {"new": 1}}
    assert replaced(full, changed, ["text"]) == {
        "text": {"depth": 2, "width": 4},
        "lists": {"new": 1},
    }


def test_differences_are_told_by_path() -> None:
    full = {"a": 1, "in": {"x": 1, "y": 2}, "names": {"model.layers.3": 8}}
    changed = {"a": 1, "in": {"x": 5, "y": 2}, "names": {"model.layers.1": 8}}
    assert list(differences(full, changed)) == [
        ("in.x", 1, 5),
        ("names", {"model.layers.3": 8}, {"model.layers.1": 8}),
    ]
