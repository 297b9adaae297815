"""What ``apply-fix`` does around the shop: which deed, on what, the proof, the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import FixResult, FixStatus
from capdoctor.report.card import CardLine
from capdoctor.report.safe_text import one_line, printable

if TYPE_CHECKING:
    from capdoctor.vendored_fixes.jobs import Job

SCHEMA = "capdoctor.fix/1"
Deed = Literal["check", "diff", "revert", "apply"]
_OPEN = frozenset({FixStatus.VULNERABLE, FixStatus.PARTLY_FIXED})
_UNPROVEN = _OPEN | {FixStatus.UNREADABLE}
_PASSED = "passed"


def deed(*, check: bool, diff: bool, revert: bool, verify: bool) -> Deed:
    """Give the one thing to do; two of them contradict each other."""
    flags: dict[Deed, bool] = {"check": check, "diff": diff, "revert": revert}
    asked = [name for name, on in flags.items() if on]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} contradict each other.", "Give one.")
    if asked and verify:
        raise UsageError(
            f"--verify proves an applied fix, --{asked[0]} applies none.", "Drop one of them."
        )
    return asked[0] if asked else "apply"


def show_fixes(*, as_json: bool) -> int:
    """Write the bundled fixes to stdout and give the exit code."""
    from capdoctor.report.json_text import document
    from capdoctor.report.terminal import show_card
    from capdoctor.vendored_fixes.catalogue import list_fixes

    fixes = list_fixes()
    if as_json:
        sys.stdout.write(document("capdoctor.fixes/1", {"fixes": fixes}) + "\n")
        return 0
    show_card([CardLine(fix.id, f"{fix.package}: {fix.title}") for fix in fixes])
    return 0


def work(
    what: Deed, fixes: Sequence[str], targets: Sequence[str], *, live: bool, allow_dirty: bool
) -> list[FixResult]:
    """Do the deed for every fix and target; all are looked at before the first is changed.

    Raises:
        CannotDo: one of them cannot be done; the hint names what this call has changed by then.
    """
    from capdoctor.vendored_fixes.applying import refuse_early
    from capdoctor.vendored_fixes.jobs import find_jobs

    jobs = find_jobs(fixes, targets)
    present = [job for job in jobs if job.target is not None]
    if what == "apply" and len(present) > 1:
        for job in present:
            if job.target is not None:
                refuse_early(job.fix, job.target, live=live, allow_dirty=allow_dirty)
    results: list[FixResult] = []
    for job in jobs:
        try:
            results += _do(what, job, live=live, allow_dirty=allow_dirty)
        except CannotDo as error:
            raise _with_what_was_done(error, results) from error
    return results


def _do(what: Deed, job: Job, *, live: bool, allow_dirty: bool) -> list[FixResult]:
    from capdoctor.vendored_fixes import applying, reverting, shop

    if job.target is None:
        return [job.absent] if job.absent else []
    if what == "apply":
        return [applying.apply(job.fix, job.target, live=live, allow_dirty=allow_dirty)]
    if what == "revert":
        missing_ok = not job.named
        return [reverting.revert(job.fix, job.target, live=live, missing_ok=missing_ok)]
    return [getattr(shop, what)(job.fix, job.target)]


def _with_what_was_done(error: CannotDo, results: Sequence[FixResult]) -> CannotDo:
    done = [f"{result.fix} in {result.target}" for result in results if result.changed_files]
    if not done:
        return error
    return CannotDo(
        error.sentence, f"{error.hint} Already changed by this call: {'; '.join(done)}."
    )


def verified(results: Sequence[FixResult]) -> list[FixResult]:
    """Run the scenario of each fix whose code is in the target, and note what came out."""
    return [replace(result, verified=_verdict(result)) for result in results]


def _verdict(result: FixResult) -> str | None:
    from pathlib import Path

    from capdoctor.engines.start import run
    from capdoctor.model import EngineSpec, Outcome
    from capdoctor.vendored_fixes.catalogue import find_fix

    scenario = find_fix(result.fix).scenario
    if not scenario or result.status_after in (FixStatus.NOT_APPLICABLE, FixStatus.UNREADABLE):
        return None
    name = f"scenario/{scenario}"
    source = Path(result.target).parent
    outcome = run(EngineSpec("embedded", name, source=source, scenario=scenario))
    if outcome.outcome is Outcome.STARTED:
        return _PASSED
    return f"{outcome.outcome.value}: {outcome.reason}"


def answer(results: Sequence[FixResult], what: Deed, *, as_json: bool) -> int:
    """Write the answer to stdout and give the exit code."""
    from capdoctor.report.json_text import document
    from capdoctor.report.terminal import show_card

    if as_json:
        sys.stdout.write(document(SCHEMA, {"results": results}) + "\n")
    elif what == "diff":
        sys.stdout.write("".join(_printable_diff(result) for result in results))
    else:
        for result in results:
            show_card(list(_card(result)))
    unproven = any(result.verified not in (None, _PASSED) for result in results)
    # A file that cannot be read may hide the fault: CI must not take it for an answer.
    undone = what != "revert" and any(result.status_after in _UNPROVEN for result in results)
    return 1 if undone or unproven else 0


def _printable_diff(result: FixResult) -> str:
    # A line of a CRLF file ends in a carriage return that belongs to the diff.
    return "\n".join(printable(line) for line in result.diff.replace("\r\n", "\n").split("\n"))


def _card(result: FixResult) -> Iterator[CardLine]:
    bad = result.status_after in _OPEN
    change = f"{result.status_before.value} -> {result.status_after.value}"
    status = change if result.changed_files else result.status_after.value
    version = f" {result.version}" if result.version else ""
    where = one_line(f"{result.target}{version}")
    yield CardLine("", f"{result.fix}: {status}  ({where})", "bad" if bad else "good")
    if result.reason:
        yield CardLine("reason", one_line(result.reason))
    for site in result.sites:
        place = one_line(f"{site.file} {site.function or ''}".strip())
        reason = f"  [{one_line(site.reason)}]" if site.reason else ""
        yield CardLine("site", f"{site.status.value}: {place}{reason}", "quiet")
    for name in result.changed_files:
        yield CardLine("changed", one_line(name))
    if result.verified:
        passed = result.verified == _PASSED
        yield CardLine("verified", one_line(result.verified), "good" if passed else "bad")
    if result.backup:
        yield CardLine("backup", one_line(result.backup), "quiet")
