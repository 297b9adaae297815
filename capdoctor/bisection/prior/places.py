"""Where in a repository the frames of a traceback are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capdoctor.bisection.history.gitcall import git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.model import Frame

INNERMOST = 3  # frames that are followed into native sources
SHORTEST_NAME = 6  # a shorter function name is mentioned by chance
MOST_FILES = 12  # a name that more native files mention leads nowhere


@dataclass(frozen=True, slots=True)
class FramePlace:
    """A frame whose file the repository has."""

    path: str
    function: str | None
    line: int | None


def files_at(mirror: Mirror, sha: str) -> frozenset[str]:
    """Return every path of a commit."""
    out = git(mirror.folder, "ls-tree", "-r", "-z", "--full-tree", "--name-only", sha)
    return frozenset(path for path in out.split("\0") if path)


def locate(frames: Iterable[Frame], files: frozenset[str]) -> tuple[FramePlace, ...]:
    """Return the frames that are in the repository, in the order given.

    A path from the package on has to be there as it is. An absolute one may lie in a worktree or
    in site-packages: the longest tail of it that the repository has is meant.
    """
    found = []
    for frame in frames:
        path = _in_repository(frame.file, files)
        if path is not None:
            function = frame.function.rpartition(".")[2] if frame.function else None
            found.append(FramePlace(path, function, frame.line))
    return tuple(dict.fromkeys(found))


def _in_repository(file: str, files: frozenset[str]) -> str | None:
    if not file.startswith("/"):
        return file if file in files else None
    for installed in ("/site-packages/", "/dist-packages/", "/lib/python3"):
        if installed in file:
            tail = file.rpartition(installed)[2]
            return tail if tail in files else None
    parts = file.split("/")[1:]
    tails = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((tail for tail in tails if tail in files), None)


def native_sources(
    mirror: Mirror, sha: str, places: Sequence[FramePlace], native: Sequence[str]
) -> tuple[frozenset[str], ...]:
    """Return, for the innermost frames, the native files that mention the frame's function.

    That is how a Python wrapper leads to the kernel behind it. A name that is everywhere says
    nothing; a partial clone would have to fetch every native file, so it says nothing either.
    """
    if mirror.partial or not native:
        return ()
    return tuple(_mentions(mirror, sha, place.function, native) for place in places[:INNERMOST])


def _mentions(
    mirror: Mirror, sha: str, function: str | None, native: Sequence[str]
) -> frozenset[str]:
    if function is None or len(function) < SHORTEST_NAME or not function.isidentifier():
        return frozenset()
    out = git_or_none(
        mirror.folder, *("grep", "-l", "-z", "-w", "-F", "-e", function, sha, "--", *native)
    )
    found = {entry.partition(":")[2] for entry in (out or "").split("\0") if entry}
    return frozenset(found) if len(found) <= MOST_FILES else frozenset()
