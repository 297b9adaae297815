"""Worktrees of the private repository, one a worker, used again for every commit."""

from __future__ import annotations

import shutil
from pathlib import Path

from capdoctor.bisection.history.gitcall import git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.journal.disk import writing
from capdoctor.bisection.provisioning.submodules import fill_submodules


class Worktrees:
    """Checkouts under ``folder``; nothing of the user's repository is written."""

    def __init__(self, mirror: Mirror, folder: Path) -> None:
        self.mirror = mirror
        self.folder = folder

    def checkout(self, worker: int, sha: str, *, submodules: bool = False) -> Path:
        """Return a clean checkout of a commit: no file of another commit, none of a run's.

        Raises:
            CannotDo: git cannot make it, for instance because the disk is full.
        """
        path = self.folder / f"worker{worker}"
        if git_or_none(path, "rev-parse", "--git-dir") is None:
            self._add(path, sha)
        else:
            git(path, "reset", "--quiet", "--hard")
            git(path, "clean", "-ffdxq")
            git(path, "checkout", "--quiet", "--force", "--detach", sha)
        git(path, "clean", "-ffdxq")
        if submodules:
            fill_submodules(self.mirror, path)
        return path

    def _add(self, path: Path, sha: str) -> None:
        shutil.rmtree(path, ignore_errors=True)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        git(self.mirror.folder, "worktree", "prune")
        git(self.mirror.folder, "worktree", "add", "--quiet", "--force", "--detach", str(path), sha)

    def remove(self) -> None:
        """Give the disk space back; the private repository forgets the worktrees."""
        shutil.rmtree(self.folder, ignore_errors=True)
        git_or_none(self.mirror.folder, "worktree", "prune")
