"""Replace several files so that a kill at any moment can be made good by the next call.

All new bytes are first staged beside their targets, then moved in order, one rename each. An
interrupted apply is undone, an interrupted revert is finished.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes import disk, journal, wheel_record
from capdoctor.vendored_fixes.journal import Change, Entry, Phase, digest


def put(entry: Entry, after: dict[str, bytes]) -> Entry:
    """Write ``after`` (name to bytes) as the journal entry says, or put everything back.

    Raises:
        CannotDo: the disk refused; everything is as it was.
    """
    try:
        _stage_and_move(entry, lambda _, change: after[change.name], range(len(entry.changes)))
        return journal.enter(entry, Phase.APPLIED)
    except OSError as error:
        _put_back(entry)
        raise CannotDo(
            f"{error.filename or entry.target} cannot be changed: {error.strerror}.",
            "Everything was put back.",
        ) from error
    except BaseException:
        _put_back(entry)
        raise


def _put_back(entry: Entry) -> None:
    try:
        undo(entry)
    except OSError as error:
        raise CannotDo(
            f"{entry.target} could not be put back: {error.strerror}.",
            f"The old files are in {entry.folder}; the next apply-fix of this target tries again.",
        ) from error


def undo(entry: Entry) -> None:
    """Give each file that the entry changed the bytes that it had, last change first."""
    backwards = range(len(entry.changes) - 1, -1, -1)
    mine = [index for index in backwards if _is_to_restore(entry.changes[index])]
    _stage_and_move(entry, lambda i, change: _restored(entry, i, change), mine)
    for index in backwards:  # what an interrupted call may have left
        disk.remove(entry.staged(index))
        remove_bytecode(Path(entry.changes[index].path))
    journal.forget(journal.enter(entry, Phase.REVERTED))


def recover(package: Path) -> list[Entry]:
    """Make good what an earlier call was killed in; give the entries that were touched."""
    journal.sweep(package)
    pending = [entry for entry in journal.entries(package) if entry.phase is not Phase.APPLIED]
    for entry in reversed(pending):
        if entry.phase is Phase.REVERTED:
            journal.forget(entry)
        else:
            undo(entry)
    return pending


def _stage_and_move(
    entry: Entry, content: Callable[[int, Change], bytes], order: range | list[int]
) -> None:
    for index in order:
        change = entry.changes[index]
        path = Path(change.path)
        disk.write_new(entry.staged(index), content(index, change), like=path.stat())
        disk.copy_labels(path, entry.staged(index))
    for index in order:
        path = Path(entry.changes[index].path)
        disk.move(entry.staged(index), path)
        remove_bytecode(path)


def _is_to_restore(change: Change) -> bool:
    """A file that is neither ours nor there is not ours to touch."""
    path = Path(change.path)
    if not path.is_file():
        return False
    now = digest(path.read_bytes())
    return now == change.after or (change.is_record and now != change.before)


def _restored(entry: Entry, index: int, change: Change) -> bytes:
    before, now = entry.before(index), Path(change.path).read_bytes()
    if not change.is_record or digest(now) == change.after:
        return before
    # Another fix changed other rows of the same RECORD since: only our rows go back.
    names = frozenset(c.name for c in entry.changes if not c.is_record)
    return wheel_record.with_old_rows(now, before, names)


def remove_bytecode(path: Path) -> None:
    """Remove the compiled forms of a source file, whichever Python they belong to."""
    if path.suffix != ".py":
        return
    cached = path.parent / "__pycache__"
    for stale in sorted(cached.glob(f"{_escaped(path.stem)}.*.pyc")) if cached.is_dir() else ():
        disk.remove(stale)
    disk.remove(path.with_suffix(".pyc"))


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def refuse_read_only(paths: list[Path]) -> None:
    """Check that each file can be replaced with its owner kept.

    A tree without write bits counts as read-only for root too: someone meant it.

    Raises:
        CannotDo: names the file or folder and the reason.
    """
    for path in paths:
        for place in (path.parent, path):
            reason = _read_only(place)
            if reason:
                raise CannotDo(
                    f"{place} {reason}.",
                    "Nothing was changed. Make it writable, or copy the package and use the copy.",
                )


def _read_only(place: Path) -> str | None:
    facts = place.stat()
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return "is on a read-only file system"
    if not facts.st_mode & 0o222 or not os.access(place, os.W_OK):
        return "is read-only"
    if not place.is_file() or os.geteuid() == 0:
        return None
    if os.geteuid() != facts.st_uid:
        return f"belongs to another user (uid {facts.st_uid}), who would lose it"
    return None if _can_keep_group(place) else f"belongs to a group (gid {facts.st_gid}) not yours"


def _can_keep_group(file: Path) -> bool:
    """Say whether a new file in its place can have its group: one of ours, or the folder's."""
    group, folder = file.stat().st_gid, file.parent.stat()
    given = folder.st_gid if folder.st_mode & stat.S_ISGID else os.getegid()
    return group in {given, os.getegid(), *os.getgroups()}
