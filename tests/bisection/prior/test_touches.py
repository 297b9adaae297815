"""Files and functions out of git's logs, renames followed."""

from __future__ import annotations

import pytest

from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.prior.blamed import blamed
from capdoctor.bisection.prior.touches import follow, touched
from tests.helpers.git_repo import Commit, build_repository

BASE = """import os


class Runner:
    def load(self):
        a = 1
        return a

    def capture(self):
        b = 2
        return b


def helper():
    return 0
"""
FILLER = "\n".join(f"# filler {number}" for number in range(30)) + "\n"
OLD, NEW = "pkg/old.py", "pkg/new.py"
HISTORY = [
    Commit({OLD: BASE + FILLER, "pkg/other.py": "x = 1\n"}),
    Commit({OLD: BASE.replace("a = 1", "a = 5") + FILLER}, "load"),
    Commit({"pkg/other.py": "x = 2\n"}, "other"),
    Commit({OLD: BASE.replace("a = 1", "a = 5").replace("b = 2", "b = 3") + FILLER}, "capture"),
    Commit({OLD: None, NEW: BASE.replace("a = 1", "a = 5").replace("b = 2", "b = 3") + FILLER}),
    Commit(
        {NEW: BASE.replace("a = 1", "a = 5").replace("b = 2", "b = 3") + "def added():\n    pass\n"}
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mirror, tuple[str, ...]]:
    folder = tmp_path_factory.mktemp("touches")
    shas = build_repository(folder / "repo", HISTORY)
    return open_mirror(folder / "repo", folder / "m"), shas


def test_a_renamed_file_keeps_its_history(made: tuple[Mirror, tuple[str, ...]]) -> None:
    mirror, shas = made
    found = touched(mirror, shas[0], shas[-1], [NEW])
    assert found.with_file(NEW) == {shas[at] for at in (1, 3, 4, 5)}
    assert found.files[shas[2]] == {"pkg/other.py"}


def test_functions_are_read_from_hunks_headers_and_definitions(
    made: tuple[Mirror, tuple[str, ...]],
) -> None:
    mirror, shas = made
    found = touched(mirror, shas[0], shas[-1], [NEW])
    assert shas[1] in found.with_function(NEW, "load")
    assert shas[3] in found.with_function(NEW, "capture")
    assert shas[3] not in found.with_function(NEW, "load")
    assert shas[5] in found.with_function(NEW, "added")


def test_blame_names_only_lines_that_the_range_wrote(
    made: tuple[Mirror, tuple[str, ...]],
) -> None:
    mirror, shas = made
    found = blamed(mirror, shas[0], shas[-1], NEW, [1, 6, 10, 9999])
    assert found == {} or found[6] == shas[1]
    within = blamed(mirror, shas[0], shas[-1], NEW, [1, 6, 10])
    assert within == {6: shas[1], 10: shas[3]}


def test_a_rename_of_an_unwatched_file_is_no_business_of_ours() -> None:
    listed = "\0aaa\n\nR100\tx.py\ty.py\nM\tz.py\n"
    files, names = follow(listed, ["z.py"])
    assert files == {"aaa": {"x.py", "y.py", "z.py"}}
    assert names == {"z.py": "z.py"}
