"""Fetch what a partial clone lacks in one go: git alone would fetch one blob at a time."""

from __future__ import annotations

from collections.abc import Iterable

from capdoctor.bisection.history.gitcall import git
from capdoctor.bisection.history.mirror import Mirror


def prefetch(mirror: Mirror, older: str, newer: str, paths: Iterable[str]) -> int:
    """Fetch the missing blobs of some paths between two commits; returns how many there were.

    They go into the private repository. Nothing is done for a full clone.

    Raises:
        CannotDo: the remote cannot be reached.
    """
    if not mirror.partial:
        return 0
    listed = git(
        mirror.folder,
        *("rev-list", "--objects", "--no-object-names", "--missing=print", "--first-parent"),
        *(newer, f"^{older}", "--", *paths),
    )
    missing = [line[1:] for line in listed.split() if line.startswith("?")]
    if missing:
        git(
            mirror.folder,
            *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "origin", "--quiet"),
            *("--no-tags", "--no-write-fetch-head", "--recurse-submodules=no"),
            *("--filter=blob:none", "--stdin"),
            stdin="\n".join(missing) + "\n",
        )
    return len(missing)
