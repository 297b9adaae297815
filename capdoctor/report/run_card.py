"""A run as a card: what was started, how far it came, the diagnosis, where its files are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from capdoctor.model import CaptureTrace, EngineInfo, MatrixRow, Outcome, RunOutcome, StageSpan
from capdoctor.report.card import CardLine, Tone, diagnosis_card
from capdoctor.report.safe_text import one_line

# The JSON names every file; a card has room for where to look first.
_FILES_SHOWN = {"folder": "folder", "log": "log"}
_HEADLINES: dict[Outcome, tuple[str, Tone]] = {
    Outcome.STARTED: ("STARTED", "good"),
    Outcome.STOPPED_AFTER_STAGE: ("PASSED THE STAGE, STOPPED", "good"),
    Outcome.CRASHED: ("CRASHED", "bad"),
    Outcome.HUNG: ("HUNG", "bad"),
    Outcome.SETUP_FAILED: ("COULD NOT BE STARTED", "bad"),
    Outcome.INTERRUPTED: ("INTERRUPTED", "quiet"),
}


def run_card(outcome: RunOutcome) -> tuple[CardLine, ...]:
    """Give the card of one reproduction."""
    return tuple(_lines(outcome))


def _lines(outcome: RunOutcome) -> Iterator[CardLine]:
    headline, tone = _HEADLINES[outcome.outcome]
    engine = one_line(_engine_text(outcome.engine))
    yield CardLine("", f"{headline} after {outcome.seconds:.1f} s: {engine}", tone)
    if outcome.reason:
        yield CardLine("reason", one_line(outcome.reason))
    if outcome.stages:
        yield CardLine("stages", _stages_text(outcome.stages), "quiet")
    for change in outcome.changes:
        yield CardLine("changed", one_line(change), "quiet")
    for note in outcome.notes:
        yield CardLine("note", one_line(note), "quiet")
    if outcome.trace is not None:
        yield from _trace_lines(outcome.trace, survived=outcome.diagnosis is None)
    if outcome.diagnosis is not None:
        yield from diagnosis_card(outcome.diagnosis)
    yield from _repeat_lines(outcome)
    yield from _matrix_lines(outcome)
    yield from _file_lines(outcome)


def _trace_lines(trace: CaptureTrace, *, survived: bool) -> Iterator[CardLine]:
    """What was traced; and what broke a capture of a run that went on: no diagnosis tells of it."""
    from capdoctor.report.trace_text import call_text, trace_summary

    yield CardLine("traced", trace_summary(trace), "quiet")
    if survived and trace.first is not None:
        yield CardLine("broken by", f"{call_text(trace.first.call)}  [and the engine went on]")


def _file_lines(outcome: RunOutcome) -> Iterator[CardLine]:
    named = dict(_FILES_SHOWN)
    if outcome.outcome is Outcome.HUNG:
        named["after_end"] = "stacks"  # every Python thread, printed when the hung engine was ended
    for kind, label in named.items():
        if kind in outcome.artifacts:
            yield CardLine(label, one_line(outcome.artifacts[kind]), "quiet")


def _engine_text(engine: EngineInfo) -> str:
    if engine.kind == "embedded":
        return f"embedded engine, {engine.device or 'virtual'} device"
    return f"{engine.kind} {engine.version or ''}".strip()


def _stages_text(stages: tuple[StageSpan, ...]) -> str:
    parts = [
        f"{span.name.value} {span.end - span.start:.1f} s"
        if span.end is not None
        else f"{span.name.value} (ended here)"
        for span in stages
    ]
    return ", ".join(parts)


def _repeat_lines(outcome: RunOutcome) -> Iterator[CardLine]:
    if len(outcome.runs) < 2:  # noqa: PLR2004 - one run is no repetition
        return
    alike = Counter(run.fingerprint for run in outcome.runs if run.fingerprint)
    crashed = sum(run.outcome is Outcome.CRASHED for run in outcome.runs)
    text = f"{crashed} of {len(outcome.runs)} crashed"
    if alike:
        text += f", {alike.most_common(1)[0][1]} of them alike"
    yield CardLine("repeats", text)


def _matrix_lines(outcome: RunOutcome) -> Iterator[CardLine]:
    for row in outcome.matrix:
        yield CardLine("mode", _matrix_text(row), "good" if _starts(row) else "bad")
    for workaround in outcome.workarounds_verified:
        text = one_line(f"{workaround.do}  (price: {workaround.cost})")
        yield CardLine("holds", text, "good")


def _matrix_text(row: MatrixRow) -> str:
    tail = f" {row.crash_class}" if row.crash_class else ""
    tail += f", same as {row.same_as.removeprefix('as ')}" if row.same_as else ""
    return f"{row.mode}: {row.outcome.value}{tail} ({row.seconds:.1f} s)"


def _starts(row: MatrixRow) -> bool:
    return row.outcome in (Outcome.STARTED, Outcome.STOPPED_AFTER_STAGE)
