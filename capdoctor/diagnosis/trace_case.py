"""An offence in the form of an incident, so that rules and fingerprints treat it like a log's."""

from __future__ import annotations

from dataclasses import replace

from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.driver_errors import DriverError, decode
from capdoctor.diagnosis.elsewhere import fitted
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.matching import Subject, best_match
from capdoctor.diagnosis.offences import OffenceClass
from capdoctor.diagnosis.signature import Signature
from capdoctor.diagnosis.staging import stage_of
from capdoctor.diagnosis.trace_link import TiedOffence
from capdoctor.diagnosis.verdicts import stage_by_facts
from capdoctor.diagnosis.versions import plain
from capdoctor.logs import UNNAMED, StackFrame
from capdoctor.model import ErrorInfo, Frame, Stage, TracedCall


def seen_incident(tied: TiedOffence, case: Case) -> Incident:
    """Give the operation that broke the capture as if the log had its traceback."""
    offence = tied.offence
    error = offence.error or offence.end_error or ErrorInfo(None, "")
    line = tied.incident.line if tied.incident is not None else case.run.last_line
    stream = tied.incident.stream if tied.incident is not None else UNNAMED
    return Incident(
        index=-1,
        kind="python",
        type=error.type,
        message=error.message,
        stream=stream,
        role=stream.role,
        line=line,
        error_line=line,
        last_line=line,
        frames=_stack_frames(offence.call),
        driver=_driver(error),
    )


def _stack_frames(call: TracedCall) -> tuple[StackFrame, ...]:
    frames = [_stack_frame(frame) for frame in call.stack[:-1]]
    last = [_stack_frame(frame, call.source) for frame in call.stack[-1:]]
    return (*frames, *last)


def _stack_frame(frame: Frame, code: str = "") -> StackFrame:
    return StackFrame(frame.file, frame.line, frame.function, code, frame.file)


def named(error: ErrorInfo) -> ErrorInfo:
    """Give the error with the driver's name and code for it, as a log's is given."""
    driver = _driver(error)
    if driver is None:
        return error
    return replace(error, code=driver.code, name=driver.name, api=driver.api, sticky=driver.sticky)


def _driver(error: ErrorInfo) -> DriverError | None:
    if error.code is not None and error.name is not None:
        return DriverError(error.code, error.name, error.api or "cuda", error.sticky)
    return decode(error.message)


def seen_stage(incident: Incident, tied: TiedOffence, case: Case) -> Stage | None:
    """Give the stage by the stack of the operation, else by the log's last mark or the run."""
    relatives = [tied.incident] if tied.incident is not None else []
    return stage_of(incident, relatives, case.run).stage or stage_by_facts(case)


def known_as(
    incident: Incident, stage: Stage | None, case: Case, seen: OffenceClass
) -> Signature | None:
    """Give the signature of the same class that fits the operation: it may be a known issue."""
    subject = Subject(
        incident=incident,
        text=incident.text.lower(),
        frames=incident.frames,
        stage=stage,
        platform=case.platform,
        engine=case.run.engine,
        versions=plain(case.versions),
        args="\n".join(args.text for args in case.run.args).lower(),
        driver_log=case.driver_log.text.lower(),
    )
    match = best_match(case.given.signatures, subject)
    if match is None or match.signature.crash_class != seen.crash_class:
        return None
    return fitted(match.signature, (incident,))
