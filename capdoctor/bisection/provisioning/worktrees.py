"""Worktrees of the private repository, one a worker, used again for every commit."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from capdoctor.bisection.history.gitcall import GitFailed, git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.journal.disk import writing
from capdoctor.bisection.provisioning.submodules import clean_submodules, fill_submodules

# Workers share the private repository, and git's own locks make the second of two callers fail.
_ONE_AT_A_TIME = threading.Lock()


class Worktrees:
    """Checkouts under ``folder``; nothing of the user's repository is written."""

    def __init__(self, mirror: Mirror, folder: Path) -> None:
        self.mirror = mirror
        self.folder = folder

    def checkout(self, worker: int, sha: str, *, submodules: bool = False) -> Path:
        """Return a clean checkout of a commit: no file of another commit, none of a run's.

        A worktree that a run or a kill has damaged is made anew.

        Raises:
            CannotDo: git cannot make it, for instance because the disk is full.
        """
        path = self.folder / f"worker{worker}"
        with _ONE_AT_A_TIME:
            if not (self._is_ours(path) and _switched(path, sha)):
                self._add(path, sha)
            if submodules:
                fill_submodules(self.mirror, path)
        return path

    def _is_ours(self, path: Path) -> bool:
        """Say whether git takes the folder for a worktree of the private repository.

        Without its ``.git`` git would look further up, and might reset the user's own checkout.
        """
        if not (path / ".git").is_file():
            return False
        found = git_or_none(path, "rev-parse", "--show-toplevel", "--git-common-dir")
        told = [Path(line).resolve() for line in (found or "").splitlines()]
        return told == [path.resolve(), self.mirror.folder.resolve()]

    def _add(self, path: Path, sha: str) -> None:
        remove_tree(path)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        git(self.mirror.folder, "worktree", "prune")
        # Twice --force: a kill while git made the worktree leaves it locked.
        force = ("--force", "--force", "--detach")
        git(self.mirror.folder, "worktree", "add", "--quiet", *force, str(path), sha)

    def remove(self) -> None:
        """Give the disk space back; the private repository forgets the worktrees."""
        remove_tree(self.folder)
        git_or_none(self.mirror.folder, "worktree", "prune")


def _switched(path: Path, sha: str) -> bool:
    """Bring a worktree to a commit; False where something in it stands in the way."""
    try:
        clean_submodules(path)
        git(path, "reset", "--quiet", "--hard")
        git(path, "clean", "-ffdxq")
        git(path, "checkout", "--quiet", "--force", "--detach", sha)
        git(path, "clean", "-ffdxq")
    except GitFailed:
        return False
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder with everything in it, also what a run has made read-only or a link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        return
    _make_writable(path)
    for folder, names, _ in os.walk(path):
        for name in names:
            _make_writable(Path(folder, name))
    shutil.rmtree(path, ignore_errors=True)


def _make_writable(folder: Path) -> None:
    if not folder.is_symlink():
        with suppress(OSError):  # somebody else's folder: git will say that it is in the way
            folder.chmod(0o700)
