"""A diagnosis and what the tracer saw of the same run, put together.

The log tells what was raised, the tracer which operation broke the capture first. Where both say
the same the answer is confirmed; where the log only has what followed, the operation answers; where
they contradict each other, a warning says so and the better founded one stands.
"""

from __future__ import annotations

from dataclasses import replace

from capdoctor.diagnosis import advice
from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.components import component_of
from capdoctor.diagnosis.driver_log import parse_driver_lines
from capdoctor.diagnosis.elsewhere import engine_of
from capdoctor.diagnosis.fingerprint import fingerprints
from capdoctor.diagnosis.frames import root_frame
from capdoctor.diagnosis.offences import OffenceClass, class_of
from capdoctor.diagnosis.staging import went_on
from capdoctor.diagnosis.trace_case import known_as, named, seen_incident, seen_stage
from capdoctor.diagnosis.trace_link import Tie, TiedOffence, offence_behind
from capdoctor.model import (
    CaptureTrace,
    Confidence,
    Diagnosis,
    ErrorInfo,
    Evidence,
    Offence,
    OffenceKind,
    ProcessRef,
    Verdict,
)
from capdoctor.report.trace_text import call_text, calls_of, circumstances

_CRASHES = frozenset({Verdict.STARTUP_CRASH, Verdict.SERVING_CRASH, Verdict.ROOT_CAUSE_NOT_IN_LOG})
_ORDER: tuple[Confidence, ...] = ("unknown", "possible", "likely", "confirmed")
# What the tracer saw for itself; the other kinds are told by elimination.
_SEEN = frozenset(
    {OffenceKind.INVALIDATED, OffenceKind.RAISED, OffenceKind.UNJOINED, OffenceKind.EVENT_OUTSIDE}
)
# What a log cannot show: the tracer's word on these outweighs a rule that fits a message.
_ONLY_SEEN = frozenset({OffenceKind.UNJOINED, OffenceKind.EVENT_OUTSIDE, OffenceKind.OTHER_THREAD})


def with_trace(found: Diagnosis, case: Case, trace: CaptureTrace) -> Diagnosis:
    """Give the diagnosis with what the tracer saw of its crash."""
    if not trace.offences:
        return found
    tied = offence_behind(case, trace) if found.verdict in _CRASHES else None
    explained = found.verdict is not Verdict.ROOT_CAUSE_NOT_IN_LOG
    if tied is None or (tied.tie is Tie.ALONE and explained):
        return _warned(found, _apart(trace.offences[0], found.error))
    seen = class_of(tied.offence) or _unnamed(found, tied.offence)
    if seen is None or _keeps_its_class(found, tied.offence, seen):
        answer = _supported(found, case, tied, seen)
    else:
        answer = _renamed(found, case, tied, seen)
    return replace(answer, trace=tied.offence, evidence=_evidence(found, tied.offence))


def _unnamed(found: Diagnosis, offence: Offence) -> OffenceClass | None:
    """The class of an operation that is the cause and that no class describes."""
    open_end = found.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG
    return (
        OffenceClass("unknown", at_most="unknown") if open_end and offence.kind in _SEEN else None
    )


def _apart(offence: Offence, error: ErrorInfo | None) -> str:
    what = (
        "nothing in this log follows" if error is None else "the error of this log does not follow"
    )
    return f"the tracer also saw a capture broken by {call_text(offence.call)}; {what} from it"


def _warned(found: Diagnosis, warning: str) -> Diagnosis:
    return replace(found, warnings=(*found.warnings, warning))


def _keeps_its_class(found: Diagnosis, offence: Offence, seen: OffenceClass) -> bool:
    """Whether the log's class stands: both say the same, or the log's word has more behind it."""
    if seen.agrees_with(found.crash_class):
        return True
    if found.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG or found.crash_class == "unknown":
        return False
    if found.verdict is Verdict.SERVING_CRASH or found.known_issue is not None:
        return True
    return offence.kind not in _ONLY_SEEN and found.confidence in {"likely", "confirmed"}


def _supported(
    found: Diagnosis, case: Case, tied: TiedOffence, seen: OffenceClass | None
) -> Diagnosis:
    """The log's own answer, with the place of the operation and what the tracer adds."""
    if seen is not None and not seen.agrees_with(found.crash_class):
        return _warned(found, _other_view(tied.offence, seen))
    if seen is None and tied.tie is not Tie.SAME:
        return found  # the tracer saw that a capture was lost, not by what
    if tied.tie is not Tie.SAME or found.root_frame is None:  # else the log has its traceback
        incident = seen_incident(tied, case)
        frame = root_frame(incident) if incident.frames else None
        found = replace(found, root_frame=frame or found.root_frame)
    if seen is None:
        return found
    return replace(found, confidence=_raised(found.confidence, _certainty(tied, seen), case))


def _other_view(offence: Offence, seen: OffenceClass) -> str:
    return f"the tracer's view is {seen.crash_class}: {call_text(offence.call)}"


def _renamed(found: Diagnosis, case: Case, tied: TiedOffence, seen: OffenceClass) -> Diagnosis:
    """The operation's class, place and advice instead of those of the log alone."""
    offence = tied.offence
    incident = seen_incident(tied, case)
    stage = found.stage or seen_stage(incident, tied, case)
    signature = known_as(incident, stage, case, seen)
    frame = root_frame(incident) or found.root_frame
    engine = engine_of(case.run.engine, (incident,))
    exact, loose = found.fingerprint, found.fingerprint_loose
    if exact is None and incident.frames:
        exact, loose = fingerprints(incident, stage, "t1")
    answer = replace(
        found,
        verdict=_verdict(found),
        crash_class=seen.crash_class,
        stage=stage,
        component=component_of(seen.crash_class, signature, frame, engine),
        error=_error(found, tied),
        root_frame=frame,
        raised_at=found.raised_at or frame,
        process=_process(found, offence),
        confidence=_certainty(tied, seen),
        cause=advice.cause_of(seen.crash_class, signature),
        known_issue=signature.known if signature else None,
        workarounds=advice.workarounds_of(seen.crash_class, signature),
        fix=signature.fix if signature else None,
        fingerprint=exact,
        fingerprint_loose=loose,
        next=advice.next_of(seen.crash_class, signature),
    )
    if found.crash_class in {"unknown", Verdict.ROOT_CAUSE_NOT_IN_LOG.value}:
        return answer
    capped = _ORDER[min(_ORDER.index(answer.confidence), _ORDER.index("likely"))]
    return _warned(replace(answer, confidence=capped), f"the log alone says {found.crash_class}")


def _verdict(found: Diagnosis) -> Verdict:
    if found.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG:
        return Verdict.STARTUP_CRASH
    return found.verdict


def _error(found: Diagnosis, tied: TiedOffence) -> ErrorInfo | None:
    """The operation's error; that of the log where it is the same, or the operation raised none."""
    if found.error is not None and (tied.tie is Tie.SAME or tied.offence.error is None):
        return found.error
    seen = tied.offence.error or tied.offence.end_error
    return named(seen) if seen is not None else None


def _process(found: Diagnosis, offence: Offence) -> ProcessRef:
    if found.process.pid is not None or found.process.name is not None:
        return found.process
    return ProcessRef(offence.process, offence.pid)


def _certainty(tied: TiedOffence, seen: OffenceClass) -> Confidence:
    """How sure the operation is the cause of this crash, and its class the right one."""
    offence = tied.offence
    witnessed = offence.kind in _SEEN or bool(_said(offence))
    level = {Tie.SAME: 3, Tie.END: 3, Tie.LATER: 2, Tie.ALONE: 1}[tied.tie]
    level = min(level, 3 if witnessed else 2, _ORDER.index(seen.at_most))
    return _ORDER[level]


def _raised(before: Confidence, by_trace: Confidence, case: Case) -> Confidence:
    """The surer of both, unless the log shows that the error was survived or is one of several."""
    root = case.root
    if root is not None and went_on(root.incident, case.stage, case.run):
        return before
    rivals = root is not None and any(rival.kind != "death" for rival in root.rivals)
    most = "likely" if rivals else by_trace
    return max(before, most, key=_ORDER.index)


def _evidence(found: Diagnosis, offence: Offence) -> tuple[Evidence, ...]:
    """The log's rows with those of the tracer after the root error."""
    rows = []
    for role, call in calls_of(offence):
        known = circumstances(call)
        rows.append(Evidence(0, call_text(call), _why(role.clause, known), "trace"))
    told = {item.text for item in found.evidence if item.source == "driver_log"}
    rows += [
        Evidence(0, text, "the CUDA driver's own log", "driver_log")
        for text in _said(offence)
        if text not in told
    ]
    return (*found.evidence[:1], *rows, *found.evidence[1:])


def _said(offence: Offence) -> tuple[str, ...]:
    """What the driver said about it, without the harmless lines of torch's own probing."""
    return parse_driver_lines("\n".join(offence.driver))


def _why(clause: str, known: str) -> str:
    return f"{clause} ({known})" if known else clause
