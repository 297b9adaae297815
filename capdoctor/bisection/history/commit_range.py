"""The first-parent commits between two ends, and the two ends against each other."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.bisection.history.commit_facts import commit_facts
from capdoctor.bisection.history.gitcall import git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.errors import CannotDo

SHORT = 12


@dataclass(frozen=True, slots=True)
class CommitRange:
    """``commits[0]`` is the older end, ``commits[-1]`` the newer; each is the parent of the next.

    ``notes`` say what is not as the user may have meant it.
    """

    commits: tuple[str, ...]
    notes: tuple[str, ...] = ()


def commit_range(mirror: Mirror, older: str, newer: str) -> CommitRange:
    """Return the first-parent history from ``older`` to ``newer``.

    Where ``older`` is not on that line (a release branch, a merged topic) the newest commit of the
    line that it contains takes its place, and a note says so.

    Raises:
        CannotDo: equal, swapped, unrelated, or cut off by a shallow clone.
    """
    if older == newer:
        raise CannotDo(f"both ends are the same commit, {older[:SHORT]}", "give two commits")
    line = git(mirror.folder, "rev-list", "--first-parent", "--reverse", newer, f"^{older}").split()
    if not line:
        raise _swapped(older, newer)
    base = git_or_none(mirror.folder, "rev-parse", "--verify", "--quiet", f"{line[0]}^1")
    if base is None:
        raise _cut_off(mirror, older, newer, line[0])
    start = base.strip()
    notes = () if start == older else (_other_base(mirror, older, newer, start),)
    return CommitRange((start, *line), notes)


def _swapped(older: str, newer: str) -> CannotDo:
    return CannotDo(
        f"the ends are swapped: {older[:SHORT]} is newer than {newer[:SHORT]} and contains it",
        "swap them; to look for the commit that fixed the crash, add --find-fix",
    )


def _cut_off(mirror: Mirror, older: str, newer: str, first: str) -> CannotDo:
    if first in mirror.shallow:
        date = git(mirror.folder, "show", "-s", "--format=%cs", first).strip()
        return CannotDo(
            f"the clone is shallow and ends at {first[:SHORT]} of {date}, before the older end",
            "run `git fetch --unshallow` in the repository, or give a newer good end",
        )
    return CannotDo(
        f"{older[:SHORT]} and {newer[:SHORT]} have no common history",
        "give two commits of one branch, or of branches that have met",
    )


def _other_base(mirror: Mirror, older: str, newer: str, start: str) -> str:
    inside = git_or_none(mirror.folder, "merge-base", "--is-ancestor", older, newer) is not None
    why = "was merged from a side branch" if inside else "is on another branch"
    return (
        f"{older[:SHORT]} {why}: the range starts at {start[:SHORT]}, the newest commit of the "
        "main line that it contains"
    )


def merged_side(mirror: Mirror, merge: str) -> CommitRange | None:
    """Return the commits that a merge brought in, from their fork point on; None if no merge."""
    parents = commit_facts(mirror, merge).parents
    if len(parents) < 2:  # noqa: PLR2004 - a merge has two parents
        return None
    side = git(
        mirror.folder, "rev-list", "--first-parent", "--reverse", parents[1], f"^{parents[0]}"
    ).split()
    if not side:
        return None
    base = git_or_none(mirror.folder, "rev-parse", "--verify", "--quiet", f"{side[0]}^1")
    return CommitRange((base.strip(), *side)) if base else None
