"""What a user writes for a commit: a name, a short id, a version, a date."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from capdoctor.bisection.history.gitcall import git, git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.errors import CannotDo

_VERSION = re.compile(r"v?(?P<number>\d+(\.\d+)+([._-]?(a|b|rc|post|dev)\d+)*)(\+(?P<local>\S+))?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?|yesterday|\d+ \w+ ago")
_ID = re.compile(r"[0-9a-f]{40,64}")
_HEX = re.compile(r"g?(?P<hex>[0-9a-f]{4,64})")
_LOCAL_COMMIT = re.compile(r"(?:^|\.)g(?P<hex>[0-9a-f]{7,40})")
_REMOTES = ("origin", "upstream")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit and how it was found (``tag v0.29.0``, ``newest commit before 2026-03-01``)."""

    sha: str
    found_as: str


def resolve(mirror: Mirror, text: str, *, tip: str | None = None) -> Revision:
    """Return the commit that ``text`` names.

    A name wins over a version, a version over a date. A date means the newest first-parent commit
    up to then, counted back from ``tip`` (default: the main branch).

    Raises:
        CannotDo: unknown or ambiguous, with what it could have meant.
    """
    text = text.strip()
    if not text or text.startswith("-"):
        raise CannotDo(f"{text!r} is not a revision", "give a tag, branch, commit, version or date")
    _refuse_ambiguous(mirror, text)
    for found in (_by_name(mirror, text), _by_version(mirror, text), _by_date(mirror, text, tip)):
        if found:
            return found
    raise _unknown(mirror, text)


def _commit(mirror: Mirror, name: str) -> str | None:
    out = git_or_none(mirror.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    sha = (out or "").strip()
    return sha if _ID.fullmatch(sha) else None  # "^main" is the commit that is left out


def _refuse_ambiguous(mirror: Mirror, text: str) -> None:
    homes = [home for home in ("tags", "heads") if _commit(mirror, f"refs/{home}/{text}")]
    ids = {home: _commit(mirror, f"refs/{home}/{text}") for home in homes}
    if len(set(ids.values())) > 1:
        raise CannotDo(
            f"{text} is both a tag and a branch, of different commits",
            f"say tags/{text} or heads/{text}",
        )
    match = _HEX.fullmatch(text)
    if match and not homes:
        commits = list(_commits_starting_with(mirror, match["hex"]))
        if len(commits) > 1:
            shown = ", ".join(sha[:12] for sha in commits[:5])
            raise CannotDo(f"{text} is the beginning of {len(commits)} commits: {shown}")


def _commits_starting_with(mirror: Mirror, prefix: str) -> Iterator[str]:
    listed = git_or_none(mirror.folder, "rev-parse", f"--disambiguate={prefix}") or ""
    for sha in listed.split():
        if (git_or_none(mirror.folder, "cat-file", "-t", sha) or "").strip() == "commit":
            yield sha


def _by_name(mirror: Mirror, text: str) -> Revision | None:
    sha = _commit(mirror, text)
    if sha:
        return Revision(sha, text)
    for remote in _REMOTES:
        sha = _commit(mirror, f"refs/remotes/{remote}/{text}")
        if sha:
            return Revision(sha, f"{remote}/{text}")
    match = _HEX.fullmatch(text)
    sha = _commit(mirror, match["hex"]) if match else _as_the_user_sees_it(mirror, text)
    return Revision(sha, text) if sha else None


def _as_the_user_sees_it(mirror: Mirror, text: str) -> str | None:
    """Return what only the user's own repository knows: reflogs, upstreams, ``:/text``."""
    found = git_or_none(mirror.source, "rev-parse", "--verify", "--quiet", text)
    return _commit(mirror, found.strip()) if found and found.strip() else None


def _by_version(mirror: Mirror, text: str) -> Revision | None:
    match = _VERSION.fullmatch(text)
    if not match:
        return None
    local = _LOCAL_COMMIT.search(match["local"] or "")
    if local and (sha := _commit(mirror, local["hex"])):
        return Revision(sha, f"the commit in {text}")
    number = match["number"]
    for tag in (f"v{number}", number, f"release-{number}", f"v{number}.0"):
        sha = _commit(mirror, f"refs/tags/{tag}")
        if sha:
            return Revision(sha, f"tag {tag}")
    return None


def _by_date(mirror: Mirror, text: str, tip: str | None) -> Revision | None:
    if not _DATE.fullmatch(text):
        return None
    start = tip or main_branch(mirror)
    # Without a time of day git would take the current one.
    moment = f"{text} 23:59:59" if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else text
    sha = git(
        mirror.folder, "rev-list", "-1", "--first-parent", f"--before={moment}", start
    ).strip()
    if not sha:
        raise CannotDo(f"no commit is as old as {text}", _shallow_hint(mirror))
    return Revision(sha, f"newest commit up to {text}")


def main_branch(mirror: Mirror) -> str:
    """Return the commit of the main branch: the remote's, a local one, or what is checked out."""
    names = ("origin/HEAD", "origin/main", "origin/master", "main", "master", "HEAD")
    found = next((sha for sha in (_commit(mirror, name) for name in names) if sha), None)
    if found is None:
        raise CannotDo(f"{mirror.source} has no main branch", "name the commit itself")
    return found


def _unknown(mirror: Mirror, text: str) -> CannotDo:
    refs = git(mirror.folder, "for-each-ref", "--format=%(refname:lstrip=2)").split()
    near = difflib.get_close_matches(text, refs, n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else _shallow_hint(mirror)
    return CannotDo(f"{mirror.source} has no commit called {text}", hint or "git fetch --tags?")


def _shallow_hint(mirror: Mirror) -> str:
    return "the clone is shallow: run `git fetch --unshallow --tags`" if mirror.shallow else ""
