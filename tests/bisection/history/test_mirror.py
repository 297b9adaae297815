"""Everything git writes goes into a private repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.blobs import read_file
from capdoctor.bisection.history.gitcall import git as call
from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.provisioning.worktrees import Worktrees
from capdoctor.errors import CannotDo
from tests.helpers.git_repo import Commit, build_repository, git, linear


def _everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return size and content of every file, the private parts of git included."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_checkouts_touch_nothing_of_the_users(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    shas = build_repository(repo, linear(6))
    (repo / "app.py").write_text("number = 'mine, not committed'\n")
    (repo / "notes.txt").write_text("untracked\n")
    before = _everything(repo)
    trees = Worktrees(open_mirror(repo, tmp_path / "m"), tmp_path / "trees")
    for at in (0, 3, 5):
        assert (trees.checkout(0, shas[at]) / "app.py").read_text() == f"number = {at}\n"
    trees.remove()
    assert _everything(repo) == before


def test_a_checkout_keeps_no_file_of_a_run_before(tmp_path: Path) -> None:
    commits = [Commit({"a.py": "1", ".gitignore": "*.so"}), Commit({"b.py": "2", "a.py": None})]
    shas = build_repository(tmp_path / "repo", commits)
    trees = Worktrees(open_mirror(tmp_path / "repo", tmp_path / "m"), tmp_path / "trees")
    folder = trees.checkout(0, shas[0])
    (folder / "stale.so").write_text("x")
    (folder / "a.py").write_text("changed")
    assert trees.checkout(0, shas[1]) == folder
    assert sorted(path.name for path in folder.iterdir()) == [".git", ".gitignore", "b.py"]


def test_hooks_of_the_user_do_not_run(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    shas = build_repository(repo, linear(3))
    ran = tmp_path / "hook-ran"
    hook = repo / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    Worktrees(open_mirror(repo, tmp_path / "m"), tmp_path / "trees").checkout(0, shas[0])
    assert not ran.exists()


def test_a_caller_that_git_itself_runs_is_not_confused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_repository(tmp_path / "other", linear(2))
    shas = build_repository(tmp_path / "repo", linear(4))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git/index"))
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    assert call(mirror.folder, "rev-parse", "main").strip() == shas[-1]
    folder = Worktrees(mirror, tmp_path / "trees").checkout(0, shas[1])
    assert (folder / "app.py").read_text() == "number = 1\n"


def test_a_linked_worktree_is_as_good_as_a_clone(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", linear(4))
    git(tmp_path / "repo", "worktree", "add", "--quiet", str(tmp_path / "linked"), shas[1])
    mirror = open_mirror(tmp_path / "linked", tmp_path / "m")
    assert call(mirror.folder, "rev-parse", "HEAD").strip() == shas[1]
    assert call(mirror.folder, "rev-parse", "main").strip() == shas[3]


def test_a_partial_clone_is_filled_privately(tmp_path: Path) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    shas = build_repository(origin, linear(6))
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    url = f"file://{origin}"
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", url, str(clone))
    before = _everything(clone)
    mirror = open_mirror(clone, tmp_path / "m")
    assert mirror.partial
    assert read_file(mirror, shas[2], "app.py") == b"number = 2\n"
    folder = Worktrees(mirror, tmp_path / "trees").checkout(0, shas[4])
    assert (folder / "app.py").read_text() == "number = 4\n"
    assert _everything(clone) == before


def test_submodules_are_filled_from_the_users_clone(tmp_path: Path) -> None:
    build_repository(tmp_path / "library", linear(2, path="lib.py"))
    repo = tmp_path / "repo"
    build_repository(repo, linear(2))
    allow = ("-c", "protocol.file.allow=always")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(repo, *allow, "submodule", "--quiet", "add", str(tmp_path / "library"), "3rdparty/lib")
    git(repo, *who, "commit", "--quiet", "-m", "add the library")
    mirror = open_mirror(repo, tmp_path / "m")
    tip = git(repo, "rev-parse", "HEAD")
    folder = Worktrees(mirror, tmp_path / "trees").checkout(0, tip, submodules=True)
    assert (folder / "3rdparty/lib/lib.py").read_text() == "number = 1\n"
    assert Worktrees(mirror, tmp_path / "t2").checkout(0, tip).joinpath("3rdparty/lib").is_dir()


@pytest.mark.parametrize("make", ["nothing", "folder", "empty"])
def test_no_repository_is_a_sentence(tmp_path: Path, make: str) -> None:
    source = tmp_path / "x"
    if make != "nothing":
        source.mkdir()
    if make == "empty":
        git(source, "init", "--quiet")
    with pytest.raises(CannotDo, match=r"is not in a git repository|has no commit yet"):
        open_mirror(source, tmp_path / "m")
