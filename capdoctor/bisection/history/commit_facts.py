"""Title, pull request, author date of a commit; the files it changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from capdoctor.bisection.history.gitcall import git
from capdoctor.bisection.history.mirror import Mirror

_SQUASHED = re.compile(r"\(#(\d+)\)\s*$")
_MERGED = re.compile(r"^Merge pull request #(\d+) from ")
_GITLAB = re.compile(r"^See merge request \S*!(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What people want to know of a commit; ``author_date`` is ISO 8601."""

    sha: str
    title: str
    pr: str | None
    author_date: str
    parents: tuple[str, ...]


def commit_facts(mirror: Mirror, sha: str) -> CommitFacts:
    """Return the facts of one commit."""
    # Not GitPython: it cannot read a repository of SHA-256 objects.
    told = git(mirror.folder, "show", "-s", "--format=%P%n%aI%n%B", f"{sha}^{{commit}}")
    parents, date, message = told.split("\n", 2)
    title, _, body = message.strip().partition("\n")
    when = datetime.fromisoformat(date).isoformat()
    return CommitFacts(sha, title.strip(), pull_request(title, body), when, tuple(parents.split()))


def pull_request(title: str, body: str = "") -> str | None:
    """Return the number of the pull request that brought a commit in, as ``#123``.

    The last ``(#123)`` counts: in a title like "Revert "x (#1)" (#2)" the first one is what was
    reverted. The merge commit of a pull request names it in front.
    """
    found = _MERGED.search(title) or _SQUASHED.search(title)
    if found:
        return f"#{found[1]}"
    request = _GITLAB.search(body)
    return f"!{request[1]}" if request else None


def changed_files(mirror: Mirror, sha: str) -> tuple[str, ...]:
    """Return the paths that differ between a commit and its first parent; a rename names both."""
    out = git(
        mirror.folder,
        *("diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", "--no-renames"),
        *("-m", "--first-parent", sha),
    )
    return tuple(path for path in out.split("\0") if path)
