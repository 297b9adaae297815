"""Title, pull request, author date of a commit; the files it changed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from capdoctor.bisection.history.gitcall import git
from capdoctor.bisection.history.mirror import Mirror, opened

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
    with opened(mirror) as repository:
        commit = repository.commit(sha)
        message = _text(commit.message)
        parents = tuple(parent.hexsha for parent in commit.parents)
        date = commit.authored_datetime.isoformat()
    title, _, body = message.strip().partition("\n")
    return CommitFacts(sha, title.strip(), pull_request(title, body), date, parents)


def _text(message: str | bytes) -> str:
    """GitPython gives bytes where a message is in no encoding it knows."""
    return message if isinstance(message, str) else message.decode(errors="replace")


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
