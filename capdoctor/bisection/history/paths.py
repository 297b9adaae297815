"""The paths that a user says matter, as git will read them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path

from capdoctor.bisection.history.commit_range import CommitRange
from capdoctor.bisection.history.gitcall import GitFailed, git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.errors import CannotDo


def paths_inside(mirror: Mirror, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths from the repository's top on; patterns of git stay as they are.

    Raises:
        CannotDo: a path lies outside the repository.
    """
    top = git_or_none(mirror.source, "rev-parse", "--show-toplevel")
    return tuple(_inside(Path(top.strip()) if top else mirror.source, path) for path in paths)


def _inside(top: Path, path: str) -> str:
    if not path.startswith(("/", "./", "../")):
        return path
    absolute = Path(posixpath.normpath(path))
    if not absolute.is_absolute():
        return posixpath.normpath(path)
    try:
        return absolute.relative_to(top).as_posix()
    except ValueError as error:
        raise CannotDo(f"--paths {path} is not in {top}", "name it from the top on") from error


def check_paths(mirror: Mirror, found: CommitRange, paths: Sequence[str]) -> None:
    """Refuse paths that no commit of the range touches: a misspelt one would blame nobody.

    Raises:
        CannotDo: with the path.
    """
    ends = (found.commits[-1], f"^{found.commits[0]}")
    for path in paths:
        try:
            hit = git(mirror.folder, "rev-list", "-1", "--first-parent", *ends, "--", path)
        except GitFailed as error:
            raise CannotDo(
                f"--paths {path}: {error.sentence}", "name it from the top on"
            ) from error
        if not hit:
            raise CannotDo(
                f"no commit of the range touches {path}",
                "name it as git does, from the repository's top on",
            )
