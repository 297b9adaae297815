"""Versions of other packages that a repository pins, and what a commit did to them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from capdoctor.bisection.history.blobs import read_file
from capdoctor.bisection.history.mirror import Mirror

_REQUIREMENT = re.compile(
    r"""^[\s"']*(?P<name>[A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*
        (?:==\s*(?P<version>[\w.+!*-]+)|@\s*\S*?@(?P<commit>[\w./-]+))""",
    re.VERBOSE | re.MULTILINE,
)
_BUILD_ARGUMENT = re.compile(
    r"""^\s*ARG\s+(?P<name>\w+?)_(?:BRANCH|COMMIT|VERSION|REF)=["']?(?P<version>[\w./+-]+)""",
    re.MULTILINE,
)
_PIN_FILE = re.compile(
    r"(^|/)(requirements[^/]*(/[^/]+)*\.(txt|in)|pyproject\.toml|Dockerfile[^/]*|[^/]*\.lock)$"
)


@dataclass(frozen=True, slots=True)
class MovedPin:
    """A package whose pinned version a commit changed; None: not pinned on that side."""

    package: str
    before: str | None
    after: str | None


def is_pin_file(path: str) -> bool:
    """Say whether a file is one that pins versions: requirements, lock files, Dockerfiles."""
    return bool(_PIN_FILE.search(path))


def pins(text: str) -> dict[str, str]:
    """Return package to version of every exact pin in a text."""
    found: dict[str, str] = {}
    for match in _REQUIREMENT.finditer(text):
        name = re.sub(r"[-_.]+", "-", match["name"]).lower()
        found[name] = match["version"] or match["commit"]
    for match in _BUILD_ARGUMENT.finditer(text):
        found[match["name"].lower()] = match["version"]
    return found


def moved_pins(mirror: Mirror, parent: str, sha: str, paths: Iterable[str]) -> tuple[MovedPin, ...]:
    """Return the pins that differ between a commit and its parent in the given files."""
    moved: dict[str, MovedPin] = {}
    for path in paths:
        old, new = (_pins_at(mirror, commit, path) for commit in (parent, sha))
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                moved.setdefault(name, MovedPin(name, old.get(name), new.get(name)))
    return tuple(moved.values())


def _pins_at(mirror: Mirror, sha: str, path: str) -> dict[str, str]:
    data = read_file(mirror, sha, path)
    return pins(data.decode(errors="replace")) if data else {}
