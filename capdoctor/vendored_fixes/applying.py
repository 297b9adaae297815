"""Put a fix into a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.model import FixResult
from capdoctor.vendored_fixes import journal, transaction, wheel_record
from capdoctor.vendored_fixes.catalogue import load_room
from capdoctor.vendored_fixes.contract import REPAIRED, FixInfo
from capdoctor.vendored_fixes.journal import Change, Entry, Phase, digest
from capdoctor.vendored_fixes.local_changes import changed_files
from capdoctor.vendored_fixes.locking import locked
from capdoctor.vendored_fixes.proving import proven_change
from capdoctor.vendored_fixes.running_engines import users_of
from capdoctor.vendored_fixes.shop import TO_CHANGE, as_result, read_found
from capdoctor.vendored_fixes.survey import look
from capdoctor.vendored_fixes.targets import Target


def apply(
    fix: FixInfo, target: Target, *, live: bool = False, allow_dirty: bool = False
) -> FixResult:
    """Change ``target`` if the code is vulnerable or partly fixed; anything else is left alone.

    The change is computed and proven before the first write. What an earlier, killed call left
    is made good first. ``live`` allows a package that a process is using, ``allow_dirty`` files
    with local changes in a git checkout.

    Raises:
        CannotDo: the target must not or cannot be changed; it is then as it was.
    """
    with locked(target.folder):
        transaction.recover(target.folder)
        found = look(target.folder, fix)
        result = as_result(fix, target, read_found(fix, found))
        if result.status_before not in TO_CHANGE:
            return result
        new = proven_change(fix, load_room(fix), found.files)
        paths = {name: (target.folder.parent / name).resolve() for name in new}
        _refuse(target, list(paths.values()), live=live, allow_dirty=allow_dirty)
        _forget_stale(fix, target)
        entry = _begin(fix, target, found.files, new, paths)
        linked = _linked(target, paths)
        return replace(_confirm(fix, target, entry, result), reason=linked)


def refuse_early(
    fix: FixInfo, target: Target, *, live: bool = False, allow_dirty: bool = False
) -> None:
    """Check that ``apply`` would not refuse ``target`` as it is now; nothing is written.

    For a call with several targets: all are looked at before the first is changed.

    Raises:
        CannotDo: what ``apply`` would say.
    """
    if any(entry.phase is not Phase.APPLIED for entry in journal.entries(target.folder)):
        return  # what a killed call left is made good first, and only then looked at
    found = look(target.folder, fix)
    if read_found(fix, found).status in TO_CHANGE:
        names = proven_change(fix, load_room(fix), found.files)
        paths = [(target.folder.parent / name).resolve() for name in names]
        _refuse(target, paths, live=live, allow_dirty=allow_dirty)


def _refuse(target: Target, paths: list[Path], *, live: bool, allow_dirty: bool) -> None:
    transaction.refuse_read_only([*paths, *wheel_record.owning_records(target.folder)])
    if not allow_dirty and (dirty := changed_files(paths)):
        raise CannotDo(
            f"{dirty[0]} has local changes that are not committed.",
            "Commit them, or say --allow-dirty: a backup is kept either way.",
        )
    refuse_running(target, live=live)


def refuse_running(target: Target, *, live: bool) -> None:
    """Check that nothing runs from the target.

    Raises:
        CannotDo: a process does; names the first one and the sign.
    """
    users = [] if live else users_of(target.folder, target.prefix)
    if users:
        first = users[0]
        raise CannotDo(
            f"{target.folder} is in use by process {first.pid} ({first.command}): {first.why}.",
            "Stop it first, or say --live: running processes keep the old code until they restart.",
        )


def _begin(
    fix: FixInfo,
    target: Target,
    old: Mapping[str, bytes],
    new: dict[str, bytes],
    paths: dict[str, Path],
) -> Entry:
    """Write the journal, then the files, then the RECORDs that list them."""
    changes: list[tuple[Change, bytes]] = []
    after = dict(new)
    for name, data in new.items():
        if str(paths[name]) not in {change.path for change, _ in changes}:
            change = Change(name, str(paths[name]), digest(old[name]), digest(data))
            changes.append((change, old[name]))
    for record in wheel_record.owning_records(target.folder):
        before = record.read_bytes()
        name = f"{record.parent.name}/{record.name}"
        after[name] = wheel_record.with_rows(before, new)
        if after[name] != before:
            path = str(record.resolve())
            change = Change(name, path, digest(before), digest(after[name]), is_record=True)
            changes.append((change, before))
    return transaction.put(journal.begin(target.folder, fix, target.version, changes), after)


def _confirm(fix: FixInfo, target: Target, entry: Entry, result: FixResult) -> FixResult:
    """Read the tree anew; what is on the disk must be fixed, or it is put back."""
    reading = read_found(fix, look(target.folder, fix))
    if reading.status not in REPAIRED:
        transaction.undo(entry)
        raise CannotDo(
            f"After the change {target.folder} read as {reading.status}, not fixed.",
            "Everything was put back. Did something else write there at the same time?",
        )
    return replace(
        result,
        status_after=reading.status,
        sites=reading.sites,
        changed_files=tuple(change.name for change in entry.changes if not change.is_record),
        backup=str(entry.folder),
    )


def _forget_stale(fix: FixInfo, target: Target) -> None:
    """Drop backups whose files are gone or replaced: nothing can be reverted to them."""
    for entry in journal.entries(target.folder):
        if entry.fix == fix.id and entry.phase is Phase.APPLIED and not _stands(entry):
            journal.forget(entry)


def _stands(entry: Entry) -> bool:
    """Say whether a file is still as this entry wrote it."""
    return any(
        Path(change.path).is_file() and digest(Path(change.path).read_bytes()) == change.after
        for change in entry.changes
        if not change.is_record
    )


def _linked(target: Target, paths: dict[str, Path]) -> str:
    away = [name for name, path in paths.items() if not path.is_relative_to(target.folder)]
    if not away:
        return ""
    return f"{away[0]} is a link: {paths[away[0]]} was changed, for everything that links to it"
