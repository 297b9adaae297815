"""Read the cases of a fix room: one text file each, several source files in it.

The head says in one line what the case shows, then ``before: STATUS`` and, for a case that
changes, ``after: STATUS``. ``-- name --`` begins a file; ``== after ==`` begins the files as they
must be afterwards (those that change). A case without ``after`` must stay as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FILE = re.compile(r"^-- (?P<name>\S+) --\n", re.MULTILINE)
_AFTER = "== after ==\n"


@dataclass(frozen=True)
class Case:
    """One case: ``after`` holds the files that change."""

    path: Path
    text: str
    before_status: str
    after_status: str | None
    before: dict[str, bytes]
    after: dict[str, bytes]

    @property
    def changes(self) -> bool:
        """Say whether the fix must change this case."""
        return self.after_status is not None


def read_case(path: Path) -> Case:
    """Read one case file."""
    head, _, rest = path.read_text(encoding="utf-8").partition("\n-- ")
    before, _, after = f"-- {rest}".partition(_AFTER)
    lines = head.splitlines()
    said = dict(line.split(": ", 1) for line in lines[1:])
    return Case(
        path, lines[0], said["before"], said.get("after"), read_files(before), read_files(after)
    )


def read_files(text: str) -> dict[str, bytes]:
    """Read the ``-- name --`` parts of a text."""
    parts = _FILE.split(text)[1:]
    return {name: data.encode() for name, data in zip(parts[::2], parts[1::2], strict=True)}


def cases_of(room: Path) -> list[Case]:
    """Read every case of a room, sorted by name."""
    return [read_case(path) for path in sorted((room / "cases").glob("*.txtar"))]
