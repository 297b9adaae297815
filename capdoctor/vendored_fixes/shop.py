"""Check, show, apply and revert a fix on a target."""

from __future__ import annotations

import difflib
from dataclasses import replace

from capdoctor.model import FixResult, FixStatus
from capdoctor.vendored_fixes import journal
from capdoctor.vendored_fixes.catalogue import load_room
from capdoctor.vendored_fixes.contract import FixInfo, Reading
from capdoctor.vendored_fixes.journal import Phase
from capdoctor.vendored_fixes.proving import proven_change
from capdoctor.vendored_fixes.source import decode
from capdoctor.vendored_fixes.survey import Found, look
from capdoctor.vendored_fixes.targets import Target

TO_CHANGE = frozenset({FixStatus.VULNERABLE, FixStatus.PARTLY_FIXED})


def check(fix: FixInfo, target: Target) -> FixResult:
    """Say what the code of ``target`` shows; reads only, and loads no LibCST."""
    reading = read_found(fix, look(target.folder, fix))
    result = as_result(fix, target, reading)
    applied = [entry for entry in journal.entries(target.folder) if entry.fix == fix.id]
    if any(entry.phase is not Phase.APPLIED for entry in applied):
        waiting = "an interrupted change is waiting: the next apply or --revert makes it good"
        return replace(result, reason="; ".join(filter(None, [result.reason, waiting])))
    return replace(result, backup=str(applied[-1].folder) if applied else None)


def diff(fix: FixInfo, target: Target) -> FixResult:
    """Say what ``apply`` would change, as a unified diff; nothing is written.

    Raises:
        CannotDo: the code needs the fix but has a shape that it does not know.
    """
    found = look(target.folder, fix)
    reading = read_found(fix, found)
    result = as_result(fix, target, reading)
    if reading.status not in TO_CHANGE:
        return result
    changed = proven_change(fix, load_room(fix), found.files)
    text = "".join(_diff_of(name, found.files.get(name, b""), new) for name, new in changed.items())
    return replace(result, diff=text)


def read_found(fix: FixInfo, found: Found) -> Reading:
    """Let the fix's room judge the files; without a marker the room is not even loaded."""
    if found.problems:
        reason = "a file that may matter cannot be read"
        return Reading(FixStatus.UNREADABLE, found.problems, reason)
    if not found.files:
        markers = " or ".join(fix.markers)
        return Reading(FixStatus.NOT_APPLICABLE, (), f"no file of {fix.package} mentions {markers}")
    return load_room(fix).read(found.files)


def as_result(fix: FixInfo, target: Target, reading: Reading) -> FixResult:
    """Give the result of a look that changed nothing."""
    return FixResult(
        fix=fix.id,
        target=str(target.folder),
        version=target.version,
        status_before=reading.status,
        status_after=reading.status,
        sites=reading.sites,
        reason=reading.reason,
    )


def _diff_of(name: str, before: bytes, after: bytes) -> str:
    old, new = (decode(data).splitlines(keepends=True) for data in (before, after))
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n"
        for line in lines
    )
