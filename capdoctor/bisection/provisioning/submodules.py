"""Fill the submodules of a worktree from the user's clone, without touching the network."""

from __future__ import annotations

from pathlib import Path

from capdoctor.bisection.history.gitcall import GitFailed, git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.errors import CannotDo


class SubmoduleMissing(CannotDo):
    """The user's clone lacks the commit of a submodule that it has filled."""


def fill_submodules(mirror: Mirror, worktree: Path) -> None:
    """Check out every submodule that the user's clone has filled; the others stay empty.

    Raises:
        SubmoduleMissing: the clone lacks the commit of a submodule that it has filled.
    """
    for name, path in _listed(worktree):
        store = mirror.common / "modules" / name
        if not store.exists():
            continue
        try:
            _fill(worktree, name, path, store)
        except GitFailed as error:
            raise SubmoduleMissing(
                f"submodule {path} cannot be checked out: {error.sentence}",
                f"run `git submodule update --init {path}` and `git fetch` in it",
            ) from error


def clean_submodules(worktree: Path) -> None:
    """Empty the submodules: what a run has left in one would otherwise stay for other commits.

    Raises:
        GitFailed: one cannot be emptied.
    """
    if any((worktree / path / ".git").exists() for _, path in _listed(worktree)):
        git(worktree, "submodule", "--quiet", "deinit", "--force", "--all")


def _listed(worktree: Path) -> list[tuple[str, str]]:
    out = git_or_none(worktree, "config", "-f", ".gitmodules", "--get-regexp", r"\.path$") or ""
    pairs = (line.split(maxsplit=1) for line in out.splitlines() if " " in line)
    return [(key.removeprefix("submodule.").removesuffix(".path"), path) for key, path in pairs]


def _fill(worktree: Path, name: str, path: str, store: Path) -> None:
    git(worktree, "config", f"submodule.{name}.url", str(store))
    allow = ("-c", "protocol.file.allow=always")
    git(worktree, *allow, "submodule", "--quiet", "update", "--init", "--force", "--", path)
