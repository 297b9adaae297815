"""What was done to a target, kept outside it: intents first, then the change, then "done".

Layout: ``$XDG_STATE_HOME/capdoctor/fixes/TARGET/NNNN-FIX/`` with ``manifest.json`` and
``before/N``, the bytes of each file. A folder without a manifest never began.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from capdoctor import folders
from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes import disk
from capdoctor.vendored_fixes.contract import FixInfo

SCHEMA = "capdoctor.fix-journal/1"
MANIFEST = "manifest.json"


class Phase(StrEnum):
    """Where a change stands. Only APPLIED and REVERTED are at rest."""

    APPLYING = "applying"
    APPLIED = "applied"
    REVERTING = "reverting"
    REVERTED = "reverted"


@dataclass(frozen=True, slots=True)
class Change:
    """One file: ``path`` is where it really lies, ``before`` and ``after`` are SHA-256."""

    name: str
    path: str
    before: str
    after: str
    is_record: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One application of one fix to one target; times are ISO 8601 in UTC."""

    folder: Path
    fix: str
    fix_version: str
    target: str
    version: str | None
    time: str
    phase: Phase
    changes: tuple[Change, ...]

    def before(self, index: int) -> bytes:
        """Give the bytes that the file at ``index`` had."""
        return (self.folder / "before" / str(index)).read_bytes()

    def staged(self, index: int) -> Path:
        """Give where the next bytes of the file at ``index`` wait to be moved into place."""
        path = Path(self.changes[index].path)
        return path.with_name(f".{path.name}.capdoctor-{self.folder.name}.tmp")


def state_folder() -> Path:
    """Give the folder of all targets, in the user's state folder."""
    return folders.state_folder() / "fixes"


def target_folder(package: Path) -> Path:
    """Give the folder that holds the entries of the package in ``package`` (a real path)."""
    key = hashlib.sha256(os.fsencode(package)).hexdigest()[:16]
    return state_folder() / f"{package.name}-{key}"


def begin(
    package: Path, fix: FixInfo, version: str | None, changes: Iterable[tuple[Change, bytes]]
) -> Entry:
    """Keep the bytes that are about to be replaced, then the intent; nothing is changed yet.

    Raises:
        CannotDo: the state folder cannot be written.
    """
    home = target_folder(package)
    try:
        disk.make_folder(home)
        folder = home / f"{_next_number(home):04d}-{fix.id}"
        disk.make_folder(folder / "before")
        kept = list(changes)
        for index, (_, data) in enumerate(kept):
            disk.write_new(folder / "before" / str(index), data)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(
            folder,
            fix.id,
            fix.version,
            str(package),
            version,
            now,
            Phase.APPLYING,
            tuple(change for change, _ in kept),
        )
        return enter(entry, Phase.APPLYING)
    except OSError as error:
        raise CannotDo(
            f"The backup cannot be written to {home}: {error.strerror}.",
            "Set XDG_STATE_HOME to a folder with room that you can write. Nothing was changed.",
        ) from error


def enter(entry: Entry, phase: Phase) -> Entry:
    """Note that ``entry`` is now in ``phase``, in one step."""
    entry = replace(entry, phase=phase)
    data = {"schema": SCHEMA, **asdict(entry), "folder": entry.folder.name}
    text = json.dumps(data, indent=1, ensure_ascii=True)
    draft = entry.folder / f"{MANIFEST}.new"
    disk.write_new(draft, text.encode())
    disk.move(draft, entry.folder / MANIFEST)
    return entry


def entries(package: Path) -> list[Entry]:
    """Give what was done to a target, oldest first.

    Raises:
        CannotDo: a manifest cannot be understood.
    """
    home = target_folder(package)
    if not home.is_dir():
        return []
    return [_read(path) for path in sorted(home.glob(f"*/{MANIFEST}"))]


def forget(entry: Entry) -> None:
    """Remove an entry that is of no further use; the manifest goes first."""
    disk.remove(entry.folder / MANIFEST)
    disk.remove_tree(entry.folder)


def sweep(package: Path) -> None:
    """Remove folders that never got a manifest."""
    home = target_folder(package)
    for folder in home.glob("[0-9]*-*") if home.is_dir() else ():
        if not (folder / MANIFEST).exists():
            disk.remove_tree(folder)


def digest(data: bytes) -> str:
    """Give the SHA-256 by which files are compared."""
    return hashlib.sha256(data).hexdigest()


def _next_number(home: Path) -> int:
    return 1 + max((int(path.name[:4]) for path in home.glob("[0-9][0-9][0-9][0-9]-*")), default=0)


def _read(path: Path) -> Entry:
    try:
        data = json.loads(path.read_bytes())
        _check_schema(data.pop("schema"))
        changes = tuple(Change(**change) for change in data.pop("changes"))
        phase = Phase(data.pop("phase"))
        return Entry(**{**data, "folder": path.parent}, phase=phase, changes=changes)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotDo(
            f"The backup's manifest {path} cannot be understood: {error}.",
            "Move its folder away if you do not need that backup any more.",
        ) from error


def _check_schema(schema: str) -> None:
    if schema != SCHEMA:
        raise ValueError("written by another version of capdoctor")
