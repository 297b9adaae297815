"""A worktree is clean and ours, whatever a run or a kill has left in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.provisioning.worktrees import Worktrees
from tests.helpers.git_repo import build_repository, git, linear

DAMAGE = {
    "no link to the repository": "rm .git",
    "a repository of its own": "rm .git && git init --quiet",
    "a lock of the index": 'touch "$(git rev-parse --git-dir)/index.lock"',
    "nothing": 'rm -rf "$PWD"',
    "no content": "rm -rf ./* .git",
    "no commit checked out": 'echo junk > "$(git rev-parse --git-dir)/HEAD"',
    "killed while git made it": 'd=$(git rev-parse --git-dir); rm -rf "$PWD"; touch "$d/locked"',
    "a link in its place": 'd=$PWD; cd ..; rm -rf "$d"; mkdir -p else; ln -s "$PWD/else" "$d"',
    "a folder that is a file now": 'd=$PWD; cd ..; rm -rf "$d"; touch "$d"',
    "commits of its own": "git -c user.name=a -c user.email=a@b commit --allow-empty -qm mine",
    "a merge under way": 'touch "$(git rev-parse --git-dir)/MERGE_HEAD"; echo x > app.py',
}


@pytest.mark.parametrize("what", list(DAMAGE))
def test_a_damaged_worktree_is_made_anew_and_the_repository_around_it_is_left_alone(
    tmp_path: Path, what: str
) -> None:
    shas = build_repository(tmp_path / "repo", linear(3))
    mine = tmp_path / "repo" / "app.py"
    mine.write_text("mine, not committed\n")
    (tmp_path / "repo" / "new.txt").write_text("untracked\n")
    work = tmp_path / "repo" / "work"  # inside the user's own checkout
    trees = Worktrees(open_mirror(tmp_path / "repo", work / "m"), work / "trees")
    folder = trees.checkout(0, shas[0])
    subprocess.run(DAMAGE[what], shell=True, cwd=folder, check=True)  # noqa: S602
    folder = trees.checkout(0, shas[2])
    assert (folder / "app.py").read_text() == "number = 2\n"
    assert git(folder, "rev-parse", "HEAD") == shas[2]
    assert not git(folder, "status", "--porcelain", "--ignored")
    assert mine.read_text() == "mine, not committed\n"
    assert (tmp_path / "repo" / "new.txt").exists()
    assert git(tmp_path / "repo", "rev-parse", "HEAD") == shas[2]


def test_nothing_of_a_run_stays_in_a_submodule(tmp_path: Path) -> None:
    build_repository(tmp_path / "library", linear(2, path="lib.py"))
    repo = tmp_path / "repo"
    build_repository(repo, linear(2))
    allow = ("-c", "protocol.file.allow=always")
    git(repo, *allow, "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(repo, *who, "commit", "--quiet", "-m", "add the library")
    tip = git(repo, "rev-parse", "HEAD")
    trees = Worktrees(open_mirror(repo, tmp_path / "m"), tmp_path / "trees")
    folder = trees.checkout(0, tip, submodules=True)
    (folder / "lib" / "build.so").write_text("stale")
    (folder / "lib" / "lib.py").write_text("changed")
    folder = trees.checkout(0, tip, submodules=True)
    assert (folder / "lib" / "lib.py").read_text() == "number = 1\n"
    assert not (folder / "lib" / "build.so").exists()
    trees.remove()
    assert not (tmp_path / "trees").exists()
    shutil.rmtree(tmp_path / "m")
