"""A diagnosis as a card of about a dozen lines, pure text; the terminal adds colour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from capdoctor.model import Diagnosis, ErrorInfo, Frame, Verdict
from capdoctor.report.safe_text import one_line

Tone = Literal["bad", "good", "plain", "quiet", "command"]
_MESSAGE_LIMIT = 300
_FOLLOW_ON_SHOWN = 2
_EVIDENCE_SHOWN = 3
_CALLERS_SHOWN = 3

TITLES: dict[Verdict, tuple[str, Tone]] = {
    Verdict.STARTUP_CRASH: ("CRASH AT START-UP", "bad"),
    Verdict.SERVING_CRASH: ("CRASH WHILE SERVING", "bad"),
    Verdict.CLEAN_STARTUP: ("CLEAN START", "good"),
    Verdict.USER_INTERRUPT: ("STOPPED BY ITS OPERATOR", "good"),
    Verdict.STARTUP_HANG: ("HANG AT START-UP", "bad"),
    Verdict.ROOT_CAUSE_NOT_IN_LOG: ("CRASH, BUT THE ROOT CAUSE IS NOT IN THIS LOG", "bad"),
    Verdict.NOT_AN_ENGINE_LOG: ("NOT AN ENGINE'S LOG", "quiet"),
}


@dataclass(frozen=True, slots=True)
class CardLine:
    """One line of a card: a label of a word or two, its text, and how it should look."""

    label: str
    text: str
    tone: Tone = "plain"


def diagnosis_card(diagnosis: Diagnosis) -> tuple[CardLine, ...]:
    """Give the card of one diagnosis, most important line first."""
    return (_title(diagnosis), *_error_lines(diagnosis), *_advice_lines(diagnosis))


def frame_text(frame: Frame | None) -> str:
    """Give ``file:line in function`` with the parts that are known."""
    if frame is None:
        return ""
    place = one_line(frame.file) + (f":{frame.line}" if frame.line is not None else "")
    return f"{place} in {one_line(frame.function)}" if frame.function else place


def place_text(line: int, source: str = "") -> str:
    """Give where a line stands; line 0 is one of the tracer's or of the driver's own log."""
    if line:
        return f"line {line}"
    return "tracer" if source == "trace" else "driver log"


def error_text(error: ErrorInfo | None) -> str:
    """Give ``type: message (name, code)`` on one line."""
    if error is None:
        return ""
    known = ", ".join(str(part) for part in (error.name, error.code) if part is not None)
    first = error.message.split("\n", 1)[0]
    text = one_line(f"{error.type}: {first}" if error.type else first, _MESSAGE_LIMIT)
    return f"{text} ({one_line(known)})" if known else text


def _title(diagnosis: Diagnosis) -> CardLine:
    title, tone = TITLES[diagnosis.verdict]
    parts = [title]
    if diagnosis.crash_class != diagnosis.verdict.value:
        parts.append(diagnosis.crash_class)
    if diagnosis.stage is not None and diagnosis.verdict is not Verdict.CLEAN_STARTUP:
        parts.append(f"stage {diagnosis.stage.value}")
    if diagnosis.component:
        parts.append(f"component {diagnosis.component}")
    parts.append(f"confidence {diagnosis.confidence}")
    return CardLine("", " | ".join(parts), tone)


def _error_lines(diagnosis: Diagnosis) -> Iterator[CardLine]:
    if diagnosis.error is not None:
        yield CardLine("error", error_text(diagnosis.error), "bad")
    if diagnosis.root_frame is not None:
        yield CardLine("root frame", frame_text(diagnosis.root_frame))
    if diagnosis.raised_at is not None and diagnosis.raised_at != diagnosis.root_frame:
        yield CardLine("raised at", frame_text(diagnosis.raised_at), "quiet")
    if process := _process_text(diagnosis):
        yield CardLine("process", process)
    if diagnosis.cause:
        yield CardLine("why", one_line(diagnosis.cause))
    yield from _trace_lines(diagnosis)
    told = [item for item in diagnosis.evidence if item.source != "trace"]
    for evidence in told[:_EVIDENCE_SHOWN]:
        place = place_text(evidence.line, evidence.source).removeprefix("line ")
        text = f"{place}: {one_line(evidence.text, 160)}  [{one_line(evidence.why)}]"
        yield CardLine("line", text, "quiet")
    yield from _follow_on_line(diagnosis)


def _trace_lines(diagnosis: Diagnosis) -> Iterator[CardLine]:
    """The operation that broke the capture, and the one that it goes back to."""
    if diagnosis.trace is None:
        return
    from capdoctor.report.trace_text import call_text, calls_of, circumstances

    for role, call in calls_of(diagnosis.trace):
        yield CardLine(role.label, f"{call_text(call)}  [{role.clause}]", "bad")
        if known := circumstances(call):
            yield CardLine("", f"  {known}", "quiet")
        callers = [frame for frame in call.stack[:-1] if not frame.file.startswith("<")]
        for frame in reversed(callers[-_CALLERS_SHOWN:]):
            yield CardLine("called from", frame_text(frame), "quiet")


def _process_text(diagnosis: Diagnosis) -> str:
    process = diagnosis.process
    parts = [one_line(process.name)] if process.name else []
    if process.pid is not None:
        parts.append(f"pid {process.pid}")
    if process.rank is not None:
        parts.append(f"rank {process.rank}")
    return ", ".join(parts) + _others_text(diagnosis)


def _others_text(diagnosis: Diagnosis) -> str:
    """Name the other ranks that failed in the same way."""
    ranks = diagnosis.extra.get("ranks")
    raised = ranks.get("raised_it") if isinstance(ranks, dict) else None
    if not isinstance(raised, list):
        return ""
    process = diagnosis.process
    # A rank is a number or the worker's place (PP1_TP0), which is then part of its name.
    own = {str(process.rank), (process.name or "").partition("_")[2]}
    others = [one_line(str(rank)) for rank in raised if str(rank) not in own]
    if not others:
        return ""
    verb = "the same" if len(others) < len(raised) else "raised"  # its own rank may not be known
    return f"; {verb} in rank{'s' if others[1:] else ''} {', '.join(others)}"


def _follow_on_line(diagnosis: Diagnosis) -> Iterator[CardLine]:
    if not diagnosis.follow_on:
        return
    shown = "; ".join(
        f"{one_line(item.type or item.message, 60)} "
        f"({place_text(item.line)}: {one_line(item.why, 60)})"
        for item in diagnosis.follow_on[-_FOLLOW_ON_SHOWN:]
    )
    count = len(diagnosis.follow_on)
    yield CardLine(
        "not the cause", f"{count} other error{'s' if count > 1 else ''}: {shown}", "quiet"
    )


def _advice_lines(diagnosis: Diagnosis) -> Iterator[CardLine]:
    if diagnosis.versions:
        text = ", ".join(
            f"{name} {one_line(claim.value)} ({one_line(claim.source, 40)})"
            for name, claim in sorted(diagnosis.versions.items(), reverse=True)
        )
        yield CardLine("versions", text, "quiet")
    if diagnosis.known_issue is not None:
        known = diagnosis.known_issue
        parts = [known.title, known.url]
        parts += [f"introduced by {known.introduced_by}"] if known.introduced_by else []
        parts += [f"fixed in {known.fixed_in}"] if known.fixed_in else []
        yield CardLine("known issue", one_line(" | ".join(parts)))
    if diagnosis.fix:
        yield CardLine("fix", f"capdoctor apply-fix {diagnosis.fix}", "command")
    for workaround in diagnosis.workarounds:
        if workaround.do == f"capdoctor apply-fix {diagnosis.fix}":
            continue  # the line above says it
        yield CardLine("workaround", one_line(f"{workaround.do}  (price: {workaround.cost})"))
    for command in diagnosis.next:
        yield CardLine("next", one_line(command), "command")
    for warning in diagnosis.warnings:
        yield CardLine("warning", one_line(warning), "quiet")
