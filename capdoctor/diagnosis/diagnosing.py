"""A log to its diagnosis."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from capdoctor.diagnosis import store
from capdoctor.diagnosis.answer import answer, nothing_found
from capdoctor.diagnosis.case import Case, Given, work_up
from capdoctor.diagnosis.driver_log import read_driver_log
from capdoctor.diagnosis.marks import without_decoys
from capdoctor.diagnosis.restarts import split_restart
from capdoctor.diagnosis.run_files import RunFiles, run_of, runs_in
from capdoctor.diagnosis.verdicts import Judgement, judge
from capdoctor.errors import CannotDo
from capdoctor.logs import ParsedLog, read_log, read_logs
from capdoctor.model import Diagnosis, Verdict

if TYPE_CHECKING:  # a log alone has neither
    from capdoctor.model import CaptureTrace, RunFacts

Source = Path | BinaryIO
_TAKES_STACKS = "py-spy dump"


@dataclass(frozen=True, slots=True)
class Beside:
    """What lies beside the log of a run.

    ``driver_log`` is the file that the driver wrote, ``trace`` what the tracer saw, ``stacks`` the
    file of what was printed after the engine was told to end.
    """

    driver_log: Path | None = None
    trace: CaptureTrace | None = None
    stacks: Path | None = None


def diagnose(
    source: Source, *, facts: RunFacts | None = None, rules: Sequence[Path] = ()
) -> Diagnosis:
    """Diagnose one log.

    ``facts`` come from a run that was under control: how it ended, its processes, the driver's own
    log. ``rules`` are further folders (or files) of signatures.

    Raises:
        CannotDo: the log cannot be read.
        UsageError: a rules folder does not exist.
    """
    loaded = store.load(rules)
    files = run_of(source) if isinstance(source, Path) else None
    if facts is None and files is not None:
        return _of_run(files, loaded)
    stacks = files.stacks if files is not None else None
    if facts is None:
        return diagnose_parsed(read_log(source), loaded, None)
    return _controlled(source, loaded, facts, Beside(facts.driver_log, facts.trace, stacks))


def diagnose_all(
    source: Source, *, rules: Sequence[Path] = ()
) -> tuple[tuple[str, Diagnosis], ...]:
    """Diagnose every log of a folder or archive, as name and diagnosis in the order of names.

    Of the folder of a run its log counts, together with what lies beside it.

    Raises:
        CannotDo: the source cannot be read, or holds no log.
        UsageError: a rules folder does not exist.
    """
    loaded = store.load(rules)
    if isinstance(source, Path):
        if (files := run_of(source)) is not None:
            return ((str(source), _of_run(files, loaded)),)
        if runs := runs_in(source):
            names = [run.log.relative_to(source).as_posix() for run in runs]
            return tuple(zip(names, (_of_run(run, loaded) for run in runs), strict=True))
    return tuple(
        (log.member or log.source, diagnose_parsed(log, loaded, None)) for log in read_logs(source)
    )


def _of_run(files: RunFiles, rules: store.Rules) -> Diagnosis:
    """Diagnose the log of a run with what lies beside it."""
    from capdoctor.diagnosis.run_end import hang_of
    from capdoctor.diagnosis.run_trace import read_run_trace
    from capdoctor.report.trace_text import fault_notes

    trace = read_run_trace(files.trace, files.driver_log)
    beside = Beside(files.driver_log, trace, files.stacks)
    found = _controlled(files.log, rules, hang_of(files.outcome), beside)
    told = fault_notes(beside.trace) if beside.trace is not None else ()
    return replace(found, warnings=(*found.warnings, *told))


def _controlled(
    source: Source, rules: store.Rules, facts: RunFacts | None, beside: Beside
) -> Diagnosis:
    """Diagnose the log of a run under control, which tells something even if the log is empty."""
    silent = isinstance(source, Path) and source.is_file() and source.stat().st_size == 0
    if facts is not None and silent:
        return _with_place(nothing_found(facts, rules.warnings), beside)
    return diagnose_parsed(read_log(source), rules, facts, beside)


def diagnose_parsed(
    log: ParsedLog, rules: store.Rules, facts: RunFacts | None, beside: Beside | None = None
) -> Diagnosis:
    """Diagnose a log that has been read already.

    ``beside`` is what lies beside the log, in the place of that of ``facts``.

    Raises:
        CannotDo: it is binary data, and no engine wrote any of it.
    """
    if beside is None:
        beside = Beside(facts.driver_log, facts.trace) if facts is not None else Beside()
    driver_log = read_driver_log(beside.driver_log)
    given = Given(rules.signatures, facts, driver_log, log.total_lines)
    runs = [part for run in log.runs for part in split_restart(without_decoys(run))]
    worked = [work_up(run, given) for run in runs]
    if not worked:
        return _with_place(nothing_found(facts, rules.warnings), beside)
    judged = [(case, judge(case, log.total_lines)) for case in worked]
    case, judgement = _the_run(judged)
    if log.binary and judgement.verdict is Verdict.NOT_AN_ENGINE_LOG:
        raise CannotDo(
            f"{log.source} is binary data, not a log.", "Give the text that was printed."
        )
    warnings = (*rules.warnings, *_other_runs(judged, case), *log.limits_hit)
    found = _with_place(answer(case, judgement, warnings), beside)
    if beside.trace is None:
        return found
    from capdoctor.diagnosis.traced import with_trace

    return with_trace(found, case, beside.trace)


def _with_place(found: Diagnosis, beside: Beside) -> Diagnosis:
    """The diagnosis of a hang with the frame at which the engine waits, as its stacks say.

    Who has the stacks needs no other tool to take them.
    """
    if found.verdict is not Verdict.STARTUP_HANG or beside.stacks is None:
        return found
    from capdoctor.diagnosis.waiting import waiting_at

    frame = waiting_at(beside.stacks)
    if frame is None:
        return found
    left = (line for line in found.next if not line.startswith(_TAKES_STACKS))
    look = f"less {shlex.quote(str(beside.stacks))}   # where each process waits"
    return replace(found, root_frame=frame, next=(look, *left))


def _the_run(judged: list[tuple[Case, Judgement]]) -> tuple[Case, Judgement]:
    """The run that the answer is about: the last that ended in some way.

    A last run that only began (the log was taken while the engine restarted) says nothing.
    """
    for case, judgement in reversed(judged):
        silent = {Verdict.ROOT_CAUSE_NOT_IN_LOG, Verdict.NOT_AN_ENGINE_LOG}
        if judgement.verdict not in silent:
            return case, judgement
        if judgement.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG and case.incidents:
            return case, judgement
    return judged[-1]


def _other_runs(judged: list[tuple[Case, Judgement]], chosen: Case) -> Iterator[str]:
    for case, judgement in judged:
        if case is not chosen and judgement.verdict is not Verdict.NOT_AN_ENGINE_LOG:
            yield (
                f"the log holds another run (lines {case.run.first_line} to {case.run.last_line}, "
                f"{judgement.verdict.value}); this answer is about the one in lines "
                f"{chosen.run.first_line} to {chosen.run.last_line}"
            )
