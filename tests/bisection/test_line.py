"""Commits, classes and positions."""

from __future__ import annotations

import pytest

from capdoctor.bisection.line import whole_line, without_inert

COMMITS = tuple("abcdefgh")


def test_each_commit_is_a_position() -> None:
    line = whole_line(COMMITS)
    assert line.size == 7
    assert [line.position(sha) for sha in COMMITS] == list(range(8))
    assert line.position("x") is None
    assert line.candidates(2, 5) == ("d", "e", "f")


def test_inert_commits_share_the_class_of_their_parent() -> None:
    line = without_inert(whole_line(COMMITS), frozenset("bdg"), 0, 7)
    assert line.size == 3
    assert [line.position(sha) for sha in COMMITS] == [0, 1, 1, 2, 2, 2, 3, 3]
    assert [line.runs_at(at) for at in range(4)] == ["a", "b", "d", "h"]
    assert line.candidates(0, 3) == ("b", "d", "g")


def test_only_the_part_that_was_looked_at_is_joined() -> None:
    line = without_inert(whole_line(COMMITS), frozenset("d"), 2, 5)
    assert [line.position(sha) for sha in COMMITS] == [0, 1, 2, 3, 3, 3, 4, 5]


def test_a_search_for_a_fix_is_the_same_list_reversed() -> None:
    line = whole_line(COMMITS, find_fix=True)
    assert (line.runs_at(0), line.runs_at(7)) == ("h", "a")
    # The newest commit that still crashes is d: the fix is e.
    assert line.changed_at(4) == "e"
    assert line.candidates(3, 4) == ("e",)
    assert line.candidates(2, 5) == ("d", "e", "f")


@pytest.mark.parametrize("find_fix", [False, True])
def test_positions_and_runs_agree(find_fix: bool) -> None:
    line = without_inert(whole_line(COMMITS, find_fix=find_fix), frozenset("bdg"), 0, 7)
    for position in range(line.size + 1):
        assert line.position(line.runs_at(position)) == position


@pytest.mark.parametrize("find_fix", [False, True])
def test_the_span_of_a_window_is_from_old_to_new(find_fix: bool) -> None:
    older, newer = whole_line(COMMITS, find_fix=find_fix).span(2, 5)
    assert (older, newer) == (2, 5)
