"""Take a fix out again: the exact bytes that were there before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.model import FixResult
from capdoctor.vendored_fixes import journal, transaction
from capdoctor.vendored_fixes.applying import refuse_running
from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.journal import Change, Entry, Phase, digest
from capdoctor.vendored_fixes.locking import locked
from capdoctor.vendored_fixes.shop import as_result, read_found
from capdoctor.vendored_fixes.survey import look
from capdoctor.vendored_fixes.targets import Target


def revert(
    fix: FixInfo, target: Target, *, live: bool = False, missing_ok: bool = False
) -> FixResult:
    """Give ``target`` the bytes that it had before ``apply``, its RECORD included.

    What an earlier, killed call left is made good first; if that was this fix, it is the answer.
    With ``missing_ok`` a target without a backup is an answer too, not an error.

    Raises:
        CannotDo: there is no backup, the package was upgraded or edited since, or another fix
            was put over this one; nothing is changed then.
    """
    with locked(target.folder):
        before = as_result(fix, target, read_found(fix, look(target.folder, fix)))
        pending = [e for e in transaction.recover(target.folder) if e.fix == fix.id]
        if pending:
            return _result(fix, target, before, pending[-1], "an interrupted change was undone")
        if missing_ok and not _entries(fix, target):
            return replace(before, reason="there is no backup, so there is nothing to revert")
        entry = _latest(fix, target)
        _refuse(fix, target, entry)
        refuse_running(target, live=live)
        files = [Path(change.path) for change in entry.changes if Path(change.path).exists()]
        transaction.refuse_read_only(files)
        names = _still_changed(entry)
        _take_out(entry)
        reason = "" if names else "the files had their old bytes already; the backup is gone now"
        return replace(_result(fix, target, before, entry, reason), changed_files=names)


def _still_changed(entry: Entry) -> tuple[str, ...]:
    """Give the files that hold what the fix wrote: a reinstall may have brought the old ones."""
    return tuple(
        change.name
        for change in entry.changes
        if not change.is_record and digest(Path(change.path).read_bytes()) == change.after
    )


def _take_out(entry: Entry) -> None:
    try:
        transaction.undo(journal.enter(entry, Phase.REVERTING))
    except OSError as error:
        raise CannotDo(
            f"{error.filename or entry.target} cannot be changed: {error.strerror}.",
            f"Old files are kept in {entry.folder}; the next call for this target finishes.",
        ) from error


def _entries(fix: FixInfo, target: Target) -> list[Entry]:
    return [entry for entry in journal.entries(target.folder) if entry.fix == fix.id]


def _latest(fix: FixInfo, target: Target) -> Entry:
    mine = _entries(fix, target)
    if not mine:
        raise CannotDo(
            f"There is no backup of {fix.id} for {target.folder}.",
            "Only what capdoctor put in can be taken out; reinstall the package instead.",
        )
    return mine[-1]


def _refuse(fix: FixInfo, target: Target, entry: Entry) -> None:
    paths = {change.path for change in entry.changes if not change.is_record}
    for later in journal.entries(target.folder):
        if later.folder.name > entry.folder.name and any(c.path in paths for c in later.changes):
            raise CannotDo(
                f"{later.fix} was put in over {fix.id} and changed the same file.",
                f"Revert {later.fix} first.",
            )
    is_wheel = any(change.is_record for change in entry.changes)
    if is_wheel and target.version != entry.version:
        raise _upgraded(
            fix, f"the package was upgraded from {entry.version} to {target.version} since"
        )
    for change in entry.changes:
        if not change.is_record and (why := _strange(change)):
            raise _upgraded(fix, why)


def _strange(change: Change) -> str | None:
    """Say why a file is not the one that the fix wrote."""
    path = Path(change.path)
    if not path.is_file():
        return f"{change.name} is not there any more"
    if digest(path.read_bytes()) not in (change.before, change.after):
        return f"{change.name} was upgraded or edited since"
    return None


def _upgraded(fix: FixInfo, why: str) -> CannotDo:
    return CannotDo(
        f"{fix.id} cannot be reverted: {why}.",
        "Nothing was changed: old bytes would not fit. Run apply-fix --check on what is there now.",
    )


def _result(
    fix: FixInfo, target: Target, before: FixResult, entry: Entry, reason: str
) -> FixResult:
    now = read_found(fix, look(target.folder, fix))
    names = tuple(change.name for change in entry.changes if not change.is_record)
    return replace(
        before,
        status_after=now.status,
        sites=now.sites,
        changed_files=names,
        backup=None,
        reason=reason or now.reason,
    )
