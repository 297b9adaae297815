"""Start an engine, watch it, say what happened."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from capdoctor.diagnosis.run_trace import read_run_trace
from capdoctor.engines.control import KeptEngine, start_order
from capdoctor.engines.ended import Ended, Limits
from capdoctor.engines.environment import MARKER, engine_environment, telling
from capdoctor.engines.gpus.of_run import watch_memory, with_memory
from capdoctor.engines.interrupts import Interrupts
from capdoctor.engines.judge import exit_code, outcome_of, process_ends
from capdoctor.engines.listener import Quiet, RunListener
from capdoctor.engines.prepare import Prepared, command_for, forget, prepare, repro_command
from capdoctor.engines.rundir import RunFolder, run_folder, write_json, write_text, writing
from capdoctor.engines.runlog import RunLog
from capdoctor.engines.runner_report import RunnerReport
from capdoctor.engines.shrink_effects import settled
from capdoctor.engines.tracer_plugin import Tracing, lay_out
from capdoctor.engines.tracing import notes_on
from capdoctor.engines.watch import EngineWatch, Progress
from capdoctor.errors import CannotDo, Interrupted
from capdoctor.host import describe_host, short_temporary_parent
from capdoctor.model import (
    Diagnosis,
    EngineSpec,
    Json,
    Outcome,
    RunFacts,
    RunOutcome,
    RunSummary,
    Stage,
    StageSpan,
)
from capdoctor.report.json_text import document, to_json

SCHEMA = "capdoctor.repro/1"
_SETUP_HINT = "nothing crashed: the engine was never started"

Diagnose = Callable[[Path, RunFacts], Diagnosis]


def run(
    spec: EngineSpec, *, listener: RunListener | None = None, diagnose: Diagnose | None = None
) -> RunOutcome:
    """Start the engine of ``spec`` once, and give how it went; everything is cleaned up.

    The outcome is ``started``, ``stopped_after_stage``, ``crashed`` or ``hung``; its ``artifacts``
    name the files, which are written to ``spec.out`` or under the user's state folder.

    Raises:
        CannotDo: a set-up failure (Python, vLLM, model folder, arguments), or a full disk.
        Interrupted: SIGINT, SIGTERM or SIGHUP came; the hint is the command that runs it again.
    """
    with (
        Interrupts(repro_command(spec)) as interrupts,
        run_folder(spec.out, spec.model) as folder,
    ):
        prepared = prepare(spec, folder.root)
        try:
            return run_prepared(prepared, folder, listener or Quiet(), interrupts, diagnose)
        finally:
            forget(prepared)


def run_prepared(
    prepared: Prepared,
    folder: RunFolder,
    listener: RunListener,
    interrupts: Interrupts,
    diagnose: Diagnose | None = None,
    *,
    title: str = "",
    caches: Path | None = None,
) -> RunOutcome:
    """Run once in ``folder``; ``caches`` is kept if given, else the run's own goes at its end."""
    listener.run_began(folder.root, f"{prepared.title} ({title})" if title else prepared.title)
    command = tuple(command_for(prepared, folder))
    report = RunnerReport(folder.report)
    memory = watch_memory(prepared)
    with interrupts.noted():
        try:
            watched = _Watched(prepared, folder, command, caches or folder.caches)
            ended = watched.watch(listener, interrupts, report)
        finally:
            _tidy(folder)
    if ended.how != "interrupted":
        interrupts.check()
    answer = _answer(prepared, folder, command, ended, report, diagnose or _diagnose)
    return _written(with_memory(answer, memory), folder, interrupts.resume)


@dataclass(frozen=True, slots=True)
class _Watched:
    """One engine process and the place where it runs."""

    prepared: Prepared
    folder: RunFolder
    command: tuple[str, ...]
    caches: Path

    def watch(self, listener: RunListener, interrupts: Interrupts, report: RunnerReport) -> Ended:
        run_id = secrets.token_hex(8)
        with writing(self.caches):
            self.caches.mkdir(parents=True, exist_ok=True)
            tmpdir = Path(tempfile.mkdtemp(prefix="capdoctor-", dir=short_temporary_parent()))
        try:
            environment = self._environment(run_id, tmpdir)
            order = start_order(self.command, environment, f"{MARKER}={run_id}", tmpdir)
            with RunLog(self.folder) as log:
                engine = KeptEngine(order, self.folder.keeper_log)
                watch = EngineWatch(engine, log, self._limits(), listener, self._progress(report))
                return watch.run(interrupts)
        finally:
            shutil.rmtree(tmpdir, ignore_errors=True)

    def _environment(self, run_id: str, tmpdir: Path) -> dict[str, str]:
        environment = engine_environment(
            {**os.environ, **self.prepared.spec.environment, **self.prepared.variables},
            run_id=run_id,
            tmpdir=tmpdir,
            caches=self.caches,
            driver_log=self.folder.driver_log,
            offline=self.prepared.offline,
            python_path=self.prepared.python_path,
            tracing=self._tracing(),
        )
        variables: dict[str, Json] = dict(telling(environment))
        known: dict[str, Json] = {"variables": variables, "host": to_json(describe_host())}
        write_json(self.folder.environment, known)
        return environment

    def _tracing(self) -> Tracing | None:
        """Lay out what the tracer needs, if the run is to be traced."""
        if not self.prepared.spec.trace:
            return None
        with writing(self.folder.trace):
            self.folder.trace.mkdir(exist_ok=True)
        if self.prepared.target is None:
            return Tracing(self.folder.trace)
        lay_out(self.folder.plugin)
        return Tracing(self.folder.trace, self.folder.plugin)

    def _limits(self) -> Limits:
        spec = self.prepared.spec
        return Limits(spec.stop_after, spec.timeout, spec.hang_after)

    def _progress(self, report: RunnerReport) -> Progress:
        if self.prepared.spec.kind == "embedded":
            return lambda stage: "ready" if stage is Stage.SERVING else None
        return lambda _stage: report.progress


def _answer(
    prepared: Prepared,
    folder: RunFolder,
    command: tuple[str, ...],
    ended: Ended,
    report: RunnerReport,
    diagnose: Diagnose,
) -> RunOutcome:
    """Judge and diagnose."""
    kind = prepared.info.kind
    step = report.step
    outcome, reason = outcome_of(ended, kind, {**report.facts, "step": step})
    facts = _facts(prepared, folder, ended)
    answer = RunOutcome(
        outcome=outcome,
        reason=reason,
        engine=prepared.info,
        command=command,
        seconds=round(ended.seconds, 3),
        stages=tuple(map(_in_milliseconds, ended.spans)),
        processes=process_ends(ended, kind),
        changes=prepared.changes + _taken_defaults(report) + _settled(prepared, folder),
        trace=facts.trace,
        notes=notes_on(facts.trace, prepared.spec, folder),
    )
    if outcome in (Outcome.CRASHED, Outcome.HUNG):
        answer = replace(answer, diagnosis=diagnose(folder.log, facts))
    return replace(answer, runs=(summary(answer),))


def _in_milliseconds(span: StageSpan) -> StageSpan:
    end = None if span.end is None else round(span.end, 3)
    return replace(span, start=round(span.start, 3), end=end)


def summary(done: RunOutcome) -> RunSummary:
    """Give a run in short, as it stands among several."""
    return RunSummary(done.outcome, done.diagnosis.fingerprint if done.diagnosis else None)


def _facts(prepared: Prepared, folder: RunFolder, ended: Ended) -> RunFacts:
    how = ended.how if ended.how in ("hung", "timed_out") else "exited"
    driver_log = _driver_log(folder)
    return RunFacts(
        how=how,
        exit_code=exit_code(ended),
        stage=ended.stage,
        processes=process_ends(ended, prepared.info.kind),
        driver_log=driver_log,
        engine=prepared.spec.kind,
        engine_version=prepared.info.version,
        trace=read_run_trace(folder.trace, driver_log) if prepared.spec.trace else None,
    )


def _driver_log(folder: RunFolder) -> Path | None:
    """Give what the driver wrote: here, or where the user has it written anyway."""
    places = [folder.driver_log, Path(os.environ.get("CUDA_LOG_FILE", folder.driver_log))]
    return next((place for place in places if place.is_file()), None)


def _settled(prepared: Prepared, folder: RunFolder) -> tuple[str, ...]:
    """Give what the engine of a smaller model chose, to be held against the full model's."""
    if not prepared.spec.shrink or not folder.log.is_file():
        return ()
    with folder.log.open(encoding="utf-8", errors="replace") as log:
        return settled(log)


def _taken_defaults(report: RunnerReport) -> tuple[str, ...]:
    taken = report.facts.get("defaults") or {}
    return tuple(
        f"{name}={value!r}, our default for a reproduction" for name, value in taken.items()
    ) + tuple(map(str, report.facts.get("lean") or ()))


def _written(answer: RunOutcome, folder: RunFolder, resume: str) -> RunOutcome:
    """Write the answer, and give it or raise what it means."""
    artifacts = {**folder.artifacts(), "json": str(folder.outcome)}
    answer = replace(answer, artifacts=artifacts)
    write_text(folder.outcome, document(SCHEMA, answer) + "\n")
    if answer.outcome is Outcome.SETUP_FAILED:
        raise CannotDo(answer.reason, f"{_SETUP_HINT}; its output is in {folder.log}")
    if answer.outcome is Outcome.INTERRUPTED:
        raise Interrupted(answer.reason, resume)
    return answer


def _diagnose(log: Path, facts: RunFacts) -> Diagnosis:
    from capdoctor.diagnosis import diagnose

    return diagnose(log, facts=facts)


def _tidy(folder: RunFolder) -> None:
    """Take caches, plug-in and empty files away; make one driver log of several processes'."""
    shutil.rmtree(folder.caches, ignore_errors=True)
    shutil.rmtree(folder.plugin, ignore_errors=True)
    with suppress(OSError):  # it is kept when there is anything in it
        folder.trace.rmdir()
    with writing(folder.driver_log):
        for part in folder.driver_log_parts():
            with folder.driver_log.open("ab") as whole:
                whole.write(part.read_bytes())
            part.unlink()
    for path in (folder.keeper_log, folder.driver_log):
        if path.exists() and path.stat().st_size == 0:
            path.unlink()
