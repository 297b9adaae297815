"""Case and verdict to the diagnosis that is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capdoctor.diagnosis import advice
from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.components import component_of
from capdoctor.diagnosis.confidence import confidence_of
from capdoctor.diagnosis.elsewhere import engine_of, fitted
from capdoctor.diagnosis.evidence import evidence_of, follow_ons_of
from capdoctor.diagnosis.findings import findings_of
from capdoctor.diagnosis.fingerprint import fingerprints
from capdoctor.diagnosis.frames import raised_at, root_frame
from capdoctor.diagnosis.hang import known_hang
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.ranks import alike_in_other_ranks, process_of, ranks_of
from capdoctor.diagnosis.roots import Root
from capdoctor.diagnosis.signature import Signature
from capdoctor.diagnosis.staging import went_on
from capdoctor.diagnosis.verdicts import (
    Judgement,
    died_by_facts,
    stage_by_facts,
    was_told_to_stop,
)
from capdoctor.diagnosis.versions import plain
from capdoctor.model import (
    Confidence,
    Diagnosis,
    ErrorInfo,
    Frame,
    Json,
    ProcessRef,
    Stage,
    Verdict,
)

if TYPE_CHECKING:
    from capdoctor.model import RunFacts

_NOBODY = ProcessRef()


@dataclass(frozen=True, slots=True)
class _Named:
    """Class, stage and confidence before the rest is put around them."""

    crash_class: str
    stage: Stage | None
    confidence: Confidence
    signature: Signature | None = None


def answer(case: Case, judgement: Judgement, warnings: tuple[str, ...]) -> Diagnosis:
    """Give the diagnosis of one run."""
    verdict = judgement.verdict
    if verdict in {Verdict.STARTUP_CRASH, Verdict.SERVING_CRASH} and case.root is not None:
        return _crash(case, case.root, judgement, warnings)
    if verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG and died_by_facts(case.facts) is not None:
        return _killed(case, judgement, warnings)
    return _no_crash(case, judgement, warnings)


def _crash(case: Case, root: Root, judgement: Judgement, warnings: tuple[str, ...]) -> Diagnosis:
    one = root.incident
    named = _name(case, root, judgement)
    frame = root_frame(one) or _dumped_frame(case, one)
    engine = engine_of(case.run.engine, root.chain)
    exact, loose = fingerprints(one, named.stage)
    signature = named.signature
    about_version = advice.version_warning(signature, plain(case.versions))
    return Diagnosis(
        verdict=judgement.verdict,
        crash_class=named.crash_class,
        stage=named.stage,
        component=component_of(named.crash_class, signature, frame, engine),
        error=error_info(one, case),
        root_frame=frame,
        raised_at=raised_at(one),
        process=process_of(one, case.run, case.facts),
        confidence=named.confidence,
        cause=advice.cause_of(named.crash_class, signature),
        evidence=evidence_of(case, judgement),
        follow_on=follow_ons_of(case),
        versions=case.versions,
        known_issue=signature.known if signature else None,
        workarounds=advice.workarounds_of(named.crash_class, signature),
        fix=signature.fix if signature else None,
        fingerprint=exact,
        fingerprint_loose=loose,
        next=advice.next_of(named.crash_class, signature),
        warnings=(*warnings, *(said for said in (about_version, _about_sticky(one)) if said)),
        extra=_findings(case, one, named.stage),
    )


def _dumped_frame(case: Case, one: Incident) -> Frame | None:
    """Where the thread was that the C library aborted, if a handler printed its stack."""
    if one.event is None or one.event.kind != "glibc_abort":
        return None
    for other in case.incidents:
        if other.kind == "native" and other.frames and other.line > one.line:
            return root_frame(other)
    return None


def _name(case: Case, root: Root, judgement: Judgement) -> _Named:
    match = root.match
    signature = fitted(match.signature if match else None, root.chain)
    crash_class = signature.crash_class if signature else "unknown"
    stage = case.stage.stage
    confidence = confidence_of(match, root.incident, case.stage, root.rivals)
    if confidence != "unknown" and went_on(root.incident, case.stage, case.run):
        confidence = "possible"
    if judgement.verdict is Verdict.SERVING_CRASH:
        known = signature if signature and signature.crash_class == "serving_crash" else None
        return _Named("serving_crash", Stage.SERVING, "likely", known)
    if stage is None:
        stage = stage_by_facts(case) or advice.stage_by_class(crash_class)
    return _Named(crash_class, stage, confidence, signature)


def _findings(case: Case, one: Incident | None, stage: Stage | None) -> dict[str, Json]:
    found = findings_of(case.run, one, stage)
    alike = alike_in_other_ranks(one, case.incidents, case.explained) if one else ()
    ranks = ranks_of(case.run, one, alike) if one else {}
    if ranks:
        found["ranks"] = ranks
    if case.facts is not None and case.facts.engine is not None:
        found["engine"] = case.facts.engine
    if case.driver_log.sentences:
        found["driver_log"] = [*case.driver_log.sentences]
    return found


def _about_sticky(one: Incident) -> str | None:
    if one.driver is None or not one.driver.sticky or not one.frames:
        return None
    return (
        f"{one.driver.name} is reported late: the stack shows where it was noticed, "
        "not where it was caused (CUDA_LAUNCH_BLOCKING=1 moves it closer)"
    )


def error_info(one: Incident, case: Case) -> ErrorInfo:
    """The root error as the log prints it."""
    driver = one.driver
    return ErrorInfo(
        type=one.type or _signal_after(one, case) or _signal_seen(one, case),
        message=one.message,
        code=driver.code if driver else None,
        name=driver.name if driver else None,
        api=driver.api if driver else None,
        sticky=driver.sticky if driver else False,
    )


def _signal_after(one: Incident, case: Case) -> str | None:
    """The signal that ended the process of a native failure, if a later line names one."""
    if one.kind == "python":
        return None
    for other in case.incidents:
        if other.death is not None and other.line >= one.line and other.death.signal:
            return other.death.signal
    return None


def _signal_seen(one: Incident, case: Case) -> str | None:
    """The signal of a death that the log notes without saying how, from who saw it."""
    untold = one.death is not None and one.death.exit_code is None
    return died_by_facts(case.facts) if untold else None


def _killed(case: Case, judgement: Judgement, warnings: tuple[str, ...]) -> Diagnosis:
    """A process of a run under control was ended by a signal, and nothing in the log says why."""
    signal = died_by_facts(case.facts) or "SIGKILL"
    confidence: Confidence = "possible" if signal == "SIGKILL" else "likely"
    stage = stage_by_facts(case) or _last_stage(case)
    facts = case.facts
    named = next((p for p in facts.processes if p.end == signal), None) if facts else None
    return Diagnosis(
        verdict=Verdict.STARTUP_CRASH,
        crash_class="native_crash",
        stage=stage,
        component="other",
        error=ErrorInfo(signal, f"the process was ended by {signal}"),
        root_frame=None,
        raised_at=None,
        process=ProcessRef(named.name, named.pid) if named else _NOBODY,
        confidence=confidence,
        cause=advice.cause_of("native_crash", None),
        evidence=evidence_of(case, judgement),
        follow_on=follow_ons_of(case),
        versions=case.versions,
        fingerprint=f"s1:{signal.lower()}-{stage or 'unknown'}",
        next=advice.next_of("native_crash", None),
        warnings=warnings,
        extra=_findings(case, None, stage),
    )


def _last_stage(case: Case) -> Stage | None:
    return case.run.marks[-1].stage if case.run.marks else None


def _no_crash(case: Case, judgement: Judgement, warnings: tuple[str, ...]) -> Diagnosis:
    verdict = judgement.verdict
    hang = known_hang(case) if verdict is Verdict.STARTUP_HANG else None
    signature = hang.signature if hang is not None else None
    cause = advice.cause_of(verdict.value, None)
    lines = advice.next_of(verdict.value, None)
    if verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG:
        cause, lines = advice.missing_cause(case)
    if verdict is Verdict.NOT_AN_ENGINE_LOG:
        cause = "The text holds nothing that an engine wrote."
    return Diagnosis(
        verdict=verdict,
        crash_class=verdict.value,
        stage=_stage_without_crash(case, judgement),
        component=advice_component(verdict),
        error=_interrupt_error(case) if verdict is Verdict.USER_INTERRUPT else None,
        root_frame=None,
        raised_at=None,
        process=_NOBODY,
        confidence=_confidence_without_crash(case, judgement),
        cause=cause,
        evidence=evidence_of(case, judgement),
        follow_on=follow_ons_of(case),
        versions=case.versions,
        known_issue=signature.known if signature is not None else None,
        workarounds=advice.workarounds_of(verdict.value, signature),
        next=lines,
        warnings=warnings,
        extra=_findings(case, None, None),
    )


def advice_component(verdict: Verdict) -> str | None:
    """The component of an answer that is no crash."""
    if verdict is Verdict.USER_INTERRUPT:
        return "user_config"
    return "vllm" if verdict is Verdict.STARTUP_HANG else None


def _interrupt_error(case: Case) -> ErrorInfo | None:
    if any(one.short_type == "KeyboardInterrupt" for one in case.incidents):
        return ErrorInfo("KeyboardInterrupt", "")
    if not was_told_to_stop(case):
        left = next((one for one in case.incidents if one.short_type == "SystemExit"), None)
        return ErrorInfo(left.type, left.message) if left is not None else None
    return ErrorInfo("SIGTERM", "") if case.run.interrupts else None


def _stage_without_crash(case: Case, judgement: Judgement) -> Stage | None:
    verdict = judgement.verdict
    if verdict is Verdict.CLEAN_STARTUP:
        return Stage.SERVING if case.run.ready is not None else stage_by_facts(case)
    if verdict is Verdict.SERVING_CRASH:
        return Stage.SERVING
    if verdict is Verdict.NOT_AN_ENGINE_LOG:
        return None
    if judgement.line:
        return case.run.stage_at(judgement.line) or stage_by_facts(case)
    return stage_by_facts(case) or _last_stage(case)


def _confidence_without_crash(case: Case, judgement: Judgement) -> Confidence:
    verdict = judgement.verdict
    if verdict is Verdict.CLEAN_STARTUP:
        return "confirmed" if case.facts is not None else "likely"
    if verdict is Verdict.USER_INTERRUPT:
        return "likely" if case.facts is not None or was_told_to_stop(case) else "possible"
    if verdict is Verdict.STARTUP_HANG:
        return "likely" if case.facts is not None else "possible"
    return "unknown" if verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG else "possible"


def nothing_found(facts: RunFacts | None, warnings: tuple[str, ...]) -> Diagnosis:
    """The answer for a text without a single line of interest."""
    hung = facts is not None and facts.how in {"hung", "timed_out"}
    verdict = Verdict.STARTUP_HANG if hung else Verdict.NOT_AN_ENGINE_LOG
    return Diagnosis(
        verdict=verdict,
        crash_class=verdict.value,
        stage=facts.stage if facts is not None else None,
        component=advice_component(verdict),
        error=None,
        root_frame=None,
        raised_at=None,
        process=_NOBODY,
        confidence="likely" if hung else "possible",
        cause=advice.cause_of(verdict.value, None),
        warnings=warnings,
    )
