"""Pair the fixes and the targets of one call; everything is found before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capdoctor.errors import CannotDo
from capdoctor.model import FixResult, FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix, list_fixes
from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.targets import Target, find_target


@dataclass(frozen=True, slots=True)
class Job:
    """One fix on one target; ``absent`` is the answer where the target lacks the package.

    ``named`` says whether the user asked for this fix or for all of them.
    """

    fix: FixInfo
    target: Target | None
    absent: FixResult | None = None
    named: bool = True


def find_jobs(names: Sequence[str], targets: Sequence[str | None]) -> tuple[Job, ...]:
    """Give every pair; no names means every fix, and those whose package is absent do not apply.

    Raises:
        UsageError: there is no fix of that name.
        CannotDo: a target cannot be used, or none has a package that any fix is for.
    """
    fixes = [find_fix(name) for name in dict.fromkeys(names)] or list(list_fixes())
    wanted: Sequence[str | None] = list(dict.fromkeys(targets)) or [None]
    jobs: list[Job] = []
    for text in wanted:
        found = [_job(fix, text, named=bool(names)) for fix in fixes]
        if all(job.target is None for job in found):
            find_target(text, fixes[0])  # says why
        jobs += found
    return tuple(jobs)


def _job(fix: FixInfo, text: str | None, *, named: bool) -> Job:
    try:
        return Job(fix, find_target(text, fix), named=named)
    except CannotDo as error:
        if named:
            raise
        return Job(fix, None, _absent(fix, text, error.sentence), named)


def _absent(fix: FixInfo, text: str | None, reason: str) -> FixResult:
    status = FixStatus.NOT_APPLICABLE
    return FixResult(fix.id, text or fix.package, None, status, status, reason=reason)
