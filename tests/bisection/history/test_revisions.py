"""What a user may write for a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.history.revisions import resolve
from capdoctor.errors import CannotDo
from tests.helpers.git_repo import build_repository, git, linear

Made = tuple[Mirror, tuple[str, ...]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("revisions")
    tags = {"v0.29.0": 5, "v0.30.0rc1": 8, "v0.30.0": 10, "release": 3, "both": 2}
    shas = build_repository(folder / "repo", linear(30), tags=tags, branches={"both": 7})
    return open_mirror(folder / "repo", folder / "mirror"), shas


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("main", 29),
        ("HEAD", 29),
        ("main~4", 25),
        ("v0.29.0", 5),
        ("0.29.0", 5),
        ("0.30", 10),
        ("0.30.0rc1", 8),
        ("tags/both", 2),
        ("heads/both", 7),
        (" v0.30.0 ", 10),
        ("HEAD@{0}", 29),
        (":/change 12", 12),
    ],
)
def test_names_and_versions(made: Made, text: str, at: int) -> None:
    assert resolve(made[0], text).sha == made[1][at]


def test_a_full_id_a_short_one_and_what_a_package_says_of_itself(made: Made) -> None:
    sha = made[1][12]
    for text in (sha, sha[:10], f"g{sha[:9]}", f"0.30.1.dev3+g{sha[:9]}", f"v0.30.0-2-g{sha[:8]}"):
        assert resolve(made[0], text).sha == sha


@pytest.mark.parametrize(
    ("date", "at"), [("2023-11-15", 25), ("2023-11-15T05:00", 6), ("2023-11-16 00:13:20", 26)]
)
def test_a_date_is_the_newest_commit_up_to_then(made: Made, date: str, at: int) -> None:
    # Commits are an hour apart and begin on 2023-11-14 at 22:13:20.
    found = resolve(made[0], date)
    assert found.sha == made[1][at]
    assert "up to" in found.found_as


def test_a_date_counts_from_the_tip_that_is_given(made: Made) -> None:
    assert resolve(made[0], "2024-05-01", tip=made[1][9]).sha == made[1][9]


def test_a_date_before_the_first_commit_is_refused(made: Made) -> None:
    with pytest.raises(CannotDo, match="as old as 2001-01-01"):
        resolve(made[0], "2001-01-01")


@pytest.mark.parametrize("text", ["", "--upload-pack=x", "-n", "  "])
def test_what_looks_like_an_option_never_reaches_git(made: Made, text: str) -> None:
    with pytest.raises(CannotDo, match="is not a revision"):
        resolve(made[0], text)


def test_an_unknown_name_offers_near_ones(made: Made) -> None:
    with pytest.raises(CannotDo, match=r"no commit called v0\.29\.1") as caught:
        resolve(made[0], "v0.29.1")
    assert "v0.29.0" in caught.value.hint


def test_a_name_for_a_tag_and_another_branch_is_ambiguous(made: Made) -> None:
    with pytest.raises(CannotDo, match="both a tag and a branch"):
        resolve(made[0], "both")


def test_the_beginning_of_several_commits_is_ambiguous(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", linear(600))
    mirror = open_mirror(tmp_path / "repo", tmp_path / "mirror")
    starts = [sha[:4] for sha in shas]
    twice = next(start for start in starts if starts.count(start) > 1)
    with pytest.raises(CannotDo, match="beginning of 2 commits"):
        resolve(mirror, twice)


def test_a_branch_that_only_the_remote_has_is_found(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "origin", linear(5))
    git(tmp_path, "clone", "--quiet", "origin", "clone")
    git(tmp_path / "clone", "checkout", "--quiet", "-b", "work")
    git(tmp_path / "clone", "branch", "--quiet", "-D", "main")
    mirror = open_mirror(tmp_path / "clone", tmp_path / "mirror")
    found = resolve(mirror, "main")
    assert (found.sha, found.found_as) == (shas[-1], "origin/main")


@pytest.mark.parametrize("text", ["^main", "main~3..main", "main^@", "HEAD:app.py", "--all"])
def test_what_names_no_single_commit_is_refused(made: Made, text: str) -> None:
    with pytest.raises(CannotDo):
        resolve(made[0], text)
