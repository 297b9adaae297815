"""Check a change before it reaches the disk: it must parse, compile, be complete and be final."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.contract import REPAIRED, FixInfo, Room


def proven_change(fix: FixInfo, room: Room, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Give the files that ``room`` rewrites, in their order, once the result has held.

    Raises:
        CannotDo: the fix does not know the code's shape, or its result does not hold.
    """
    changed = room.rewrite(files)
    for name, data in changed.items():
        _compile(fix, name, data)
    merged = {**files, **changed}
    reading = room.read(merged)
    if reading.status not in REPAIRED:
        open_sites = [site for site in reading.sites if site.status not in REPAIRED]
        where = f" ({open_sites[0].file} {open_sites[0].reason})" if open_sites else ""
        raise _not_held(fix, f"the tree would be {reading.status}{where}")
    if again := room.rewrite(merged):
        raise _not_held(fix, f"a second run would change {next(iter(again))} again")
    return changed


def _compile(fix: FixInfo, name: str, data: bytes) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise _not_held(fix, f"{name} would not compile ({error})") from error


def _not_held(fix: FixInfo, why: str) -> CannotDo:
    return CannotDo(
        f"The fix {fix.id} does not hold on this code: {why}.",
        "Nothing was written. Please report the code around the sites that --check names.",
    )
