"""The first-parent range, and ends that do not fit together."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.commit_range import commit_range, merged_side
from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.errors import CannotDo
from tests.helpers.git_repo import Commit, build_repository, git, linear


def _change(name: str, *parents: int) -> Commit:
    return Commit({name: name}, name, parents)


# main: 0 - 1 - 4(merge of 3) - 5;  topic: 1 - 2 - 3;  release: 1 - 6;  island: 7
SHAPE = [
    _change("a"),
    _change("b", 0),
    _change("c", 1),
    _change("d", 2),
    Commit({"c": "c", "d": "d"}, "Merge pull request #7 from x/y", (1, 3)),
    _change("e", 4),
    _change("f", 1),
    _change("g"),
    _change("h", 5),
]


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("range")
    refs = {"release": 6, "island": 7}
    return folder, build_repository(folder / "repo", SHAPE, branches=refs)


def test_a_linear_range_has_both_ends(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", linear(9))
    mirror = open_mirror(tmp_path / "repo", tmp_path / "mirror")
    assert commit_range(mirror, shas[2], shas[7]).commits == shas[2:8]


def test_merged_commits_are_one_step_of_the_line(shaped: tuple[Path, tuple[str, ...]]) -> None:
    folder, shas = shaped
    mirror = open_mirror(folder / "repo", folder / "m1")
    found = commit_range(mirror, shas[0], shas[8])
    assert found.commits == tuple(shas[at] for at in (0, 1, 4, 5, 8))
    assert found.notes == ()


def test_a_good_end_on_a_release_branch_gives_way_to_where_it_left(
    shaped: tuple[Path, tuple[str, ...]],
) -> None:
    folder, shas = shaped
    mirror = open_mirror(folder / "repo", folder / "m2")
    found = commit_range(mirror, shas[6], shas[8])
    assert found.commits == tuple(shas[at] for at in (1, 4, 5, 8))
    assert "on another branch" in found.notes[0]


def test_a_good_end_inside_a_merged_branch_is_said(shaped: tuple[Path, tuple[str, ...]]) -> None:
    folder, shas = shaped
    mirror = open_mirror(folder / "repo", folder / "m3")
    found = commit_range(mirror, shas[2], shas[8])
    assert found.commits[0] == shas[1]
    assert "merged from a side branch" in found.notes[0]


def test_equal_swapped_and_unrelated_ends_each_have_their_answer(
    shaped: tuple[Path, tuple[str, ...]],
) -> None:
    folder, shas = shaped
    mirror = open_mirror(folder / "repo", folder / "m4")
    with pytest.raises(CannotDo, match="same commit"):
        commit_range(mirror, shas[1], shas[1])
    with pytest.raises(CannotDo, match="swapped") as caught:
        commit_range(mirror, shas[8], shas[1])
    assert "--find-fix" in caught.value.hint
    with pytest.raises(CannotDo, match="no common history"):
        commit_range(mirror, shas[7], shas[8])


def test_a_merge_is_opened_into_what_it_brought(shaped: tuple[Path, tuple[str, ...]]) -> None:
    folder, shas = shaped
    mirror = open_mirror(folder / "repo", folder / "m5")
    side = merged_side(mirror, shas[4])
    assert side is not None
    assert side.commits == (shas[1], shas[2], shas[3])
    assert merged_side(mirror, shas[5]) is None


def test_a_shallow_clone_says_what_is_missing(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "origin", linear(20), tags={"old": 2})
    url = f"file://{tmp_path / 'origin'}"
    git(tmp_path, "clone", "--quiet", "--depth=5", url, "clone")
    git(tmp_path / "clone", "fetch", "--quiet", "--depth=1", "origin", "tag", "old")
    mirror = open_mirror(tmp_path / "clone", tmp_path / "mirror")
    with pytest.raises(CannotDo, match="shallow and ends at") as caught:
        commit_range(mirror, shas[2], shas[19])
    assert "--unshallow" in caught.value.hint
    assert commit_range(mirror, shas[16], shas[19]).commits == shas[16:20]
