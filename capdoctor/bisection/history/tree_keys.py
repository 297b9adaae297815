"""Keys that are equal exactly when the paths in question are, read from git trees alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from capdoctor.bisection.history.gitcall import git
from capdoctor.bisection.history.mirror import Mirror


def tree_key(mirror: Mirror, sha: str, paths: Sequence[str], without: Sequence[str] = ()) -> str:
    """Return a hash of the tree ids of ``paths`` in a commit; a submodule counts by its commit.

    ``without`` leaves out direct children of a path. A path that the commit lacks counts as
    absent. No blob and no checkout is needed.
    """
    asked = [f"{path}/" if _holds(path, without) else path for path in paths]
    listed = git(mirror.folder, "ls-tree", "-z", "--full-tree", sha, "--", *asked)
    entries = sorted(line for line in listed.split("\0") if line)
    kept = [line for line in entries if line.partition("\t")[2] not in without]
    return hashlib.sha256("\0".join(kept).encode()).hexdigest()[:16] if kept else "none"


def _holds(path: str, without: Sequence[str]) -> bool:
    return any(name.startswith(f"{path}/") for name in without)


def live_commits(mirror: Mirror, older: str, newer: str, paths: Sequence[str]) -> frozenset[str]:
    """Return the first-parent commits of (older, newer] that change any of ``paths``.

    The others are inert: they ship what their parent ships. Costs about half a millisecond a
    commit, so it is asked for when the range has become short enough.
    """
    listed = git(
        mirror.folder,
        *("rev-list", "--first-parent", "--full-history", newer, f"^{older}", "--", *paths),
    )
    return frozenset(listed.split())
