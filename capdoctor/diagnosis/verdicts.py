"""What kind of log it is: crash, clean start, crash while serving, stopped on purpose, …."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capdoctor.diagnosis.case import Case, is_engine_death
from capdoctor.diagnosis.hang import hang_line
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.roots import Root
from capdoctor.diagnosis.tables import table
from capdoctor.model import Stage, Verdict

if TYPE_CHECKING:  # it brings all that is known of runs, and no name is needed to read a log
    from capdoctor.model import RunFacts

_FATAL_SERVING_HEADS = (
    "EngineCore encountered a fatal error",
    "Scheduler hit an exception",
    "WorkerProc hit an exception",
    "AsyncLLM output_handler failed",
    "Engine background task failed",
)
# Classes that say something about GPU start-up whatever program printed the line.
_GENERIC_CLASSES = frozenset(
    {"port_in_use", "hub_access", "package_missing", "config_invalid", "host_memory_exhausted",
     "lib_missing", "shm_too_small", "weights_corrupt", "native_crash", "package_version_conflict",
     "abi_mismatch", "capture_metadata_error"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, and the line that speaks for it (0: none)."""

    verdict: Verdict
    line: int = 0
    why: str = ""


def judge(case: Case, total_lines: int) -> Judgement:
    """Give the verdict of one run."""
    decided = _by_facts(case) or _by_interrupt(case) or _by_readiness(case)
    if decided is not None:
        return decided
    if not has_engine_signs(case) and (
        _is_of_another_program(case) or not _is_excerpt_of_one(case, total_lines)
    ):
        return Judgement(Verdict.NOT_AN_ENGINE_LOG)
    if case.root is not None:
        return Judgement(Verdict.STARTUP_CRASH)
    hang = hang_line(case)
    if hang is not None and not case.incidents:
        return Judgement(Verdict.STARTUP_HANG, hang[0], "printed while a process waits for another")
    return Judgement(Verdict.ROOT_CAUSE_NOT_IN_LOG)


def _by_facts(case: Case) -> Judgement | None:
    facts = case.facts
    if facts is None:
        return None
    if facts.how in {"hung", "timed_out"}:
        why = "no output and no CPU time" if facts.how == "hung" else "the time limit passed"
        return Judgement(Verdict.STARTUP_HANG, why=why)
    if facts.how == "interrupted":
        return Judgement(Verdict.USER_INTERRUPT, why="the run was interrupted")
    if facts.how == "stopped_after_stage" and case.root is None:
        return Judgement(Verdict.CLEAN_STARTUP, why="stopped after the stage that was asked for")
    return None


# Functions that turn a signal into an exit.
_HANDLERS = ("signal_handler", "sigterm_handler", "handle_exit", "handle_signal", "handle_sigterm")


def stop_line(case: Case) -> tuple[int, str] | None:
    """The first sign that someone stopped the engine, as line and text."""
    stops = [*_stops_by_hand(case)]
    stops += [(one.line, one.text) for one in case.incidents if _is_orderly_exit(one)]
    return min(stops) if stops else None


def was_told_to_stop(case: Case) -> bool:
    """Whether the log says that a person or a signal stopped it, not only that it exited."""
    return bool(_stops_by_hand(case))


def _is_orderly_exit(one: Incident) -> bool:
    """A process that left with code 0 or in its signal handler, and no worker: those are told."""
    if one.short_type != "SystemExit" or one.role == "worker":
        return False
    in_handler = any((frame.function or "").endswith(_HANDLERS) for frame in one.frames)
    return in_handler or one.message.strip() == "0"


def _stops_by_hand(case: Case) -> list[tuple[int, str]]:
    stops = [
        (s.line, s.text) for s in case.run.interrupts if s.kind in {"ctrl_c", "keyboard_interrupt"}
    ]
    stops += [
        (s.line, s.text)
        for s in case.run.interrupts
        if s.kind == "signal" and s.signal in _stopping_signals(case)
    ]
    stops += [
        (one.line, one.text) for one in case.incidents if one.short_type == "KeyboardInterrupt"
    ]
    return stops


def _stopping_signals(case: Case) -> frozenset[str]:
    """Signals that speak of a person; once it is ready a front end ends its engine by SIGTERM."""
    return frozenset({"SIGINT", "SIGTERM"} if case.run.ready is None else {"SIGINT"})


def _by_interrupt(case: Case) -> Judgement | None:
    stop = stop_line(case)
    if stop is None or (case.root is not None and case.root.incident.line < stop[0]):
        return None
    if any(_is_orphan_of_crash(one, case, stop[0]) for one in case.incidents):
        return None
    why = (
        "the engine was stopped by hand" if was_told_to_stop(case) else "the process left by itself"
    )
    return Judgement(Verdict.USER_INTERRUPT, stop[0], why)


def _is_orphan_of_crash(one: Incident, case: Case, stop: int) -> bool:
    """A follow-on of a crash that came before the stop: the crash is only not in the log."""
    explanation = case.explained.get(one.index)
    return (
        explanation is not None
        and explanation.cause is None
        and explanation.rule != "interrupt"
        and one.line < stop
    )


def _by_readiness(case: Case) -> Judgement | None:
    ready = case.run.ready
    if ready is None:
        return None
    if case.root is not None and _ended_the_engine(case, case.root):
        return Judgement(Verdict.SERVING_CRASH, ready.line, "start-up had finished")
    if any(is_engine_death(one) for one in case.incidents):
        return Judgement(Verdict.SERVING_CRASH, ready.line, "start-up had finished")
    return Judgement(Verdict.CLEAN_STARTUP, ready.line, "start-up finished")


def _ended_the_engine(case: Case, root: Root) -> bool:
    if root.incident.kind != "python":
        return True
    if any(one.headline.startswith(_FATAL_SERVING_HEADS) for one in root.chain):
        return True
    later = [one for one in case.incidents if one.line >= root.incident.line]
    return any(
        one.kind != "python"
        or is_engine_death(one)
        or (
            "engine" in one.message.lower()
            and case.explained.get(one.index) is not None
            and case.explained[one.index].rule.startswith("engine")
        )
        for one in later
    )


def has_engine_signs(case: Case) -> bool:
    """Whether an engine wrote any of it."""
    run = case.run
    if run.engine is not None or run.marks or run.call_sites or case.facts is not None:
        return True
    packages = tuple(table("native_kinds")["engine_packages"])
    return any(
        (frame.path or frame.file).startswith(packages) or "/vllm/" in frame.file
        for one in case.incidents
        for frame in one.frames
    )


def _is_of_another_program(case: Case) -> bool:
    signs = tuple(table("native_kinds")["foreign_signs"])
    return any(sign in line.text for line in case.run.lines for sign in signs)


def _is_excerpt_of_one(case: Case, total_lines: int) -> bool:
    """A pasted line or traceback that a rule knows, without anything around it."""
    root = case.root
    if root is None:
        orphans = [e for e in case.explained.values() if e.cause is None]
        return bool(orphans) or hang_line(case) is not None
    if root.match is None:
        return root.incident.driver is not None
    generic = root.match.signature.crash_class in _GENERIC_CLASSES
    return not generic or total_lines <= int(table("native_kinds")["excerpt_lines"])


def died_by_facts(facts: RunFacts | None) -> str | None:
    """The signal that ended the first process that was ended by one, if the controller saw it."""
    if facts is None:
        return None
    for process in facts.processes:
        if process.end.startswith("SIG") and "ended by capdoctor" not in process.end:
            return process.end.split(" ", 1)[0]
    if facts.exit_code is not None and facts.exit_code < 0:
        from signal import Signals

        try:
            return Signals(-facts.exit_code).name
        except ValueError:
            return None
    return None


def stage_by_facts(case: Case) -> Stage | None:
    """The stage that the controller saw begin last."""
    return case.facts.stage if case.facts is not None else None
