"""Reads what the tracer wrote in the processes of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capdoctor.capture.tracer.driver_lines import (
    attribute,
    read_driver_log,
    threads_of,
)
from capdoctor.capture.tracer.lines import call_of, error_of, offence_kind
from capdoctor.capture.tracer.safe_lines import Line, safe_lines, trace_files
from capdoctor.model.traces import CaptureTrace, Offence, OffenceKind

_MOST_OFFENCES = 1_000
TRACER_PACKAGE = Path(__file__).resolve().parent / "inside"
"""The folder to hand to a target Python as the package ``capdoctor_tracer``."""


@dataclass(slots=True)
class _Process:
    """What one file says."""

    pid: int | None = None
    name: str | None = None
    offences: list[Line] = field(default_factory=list)
    suspects: list[Line] = field(default_factory=list)
    ends: dict[int, Line] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    begun: float = 0.0
    captures: int = 0


def read_trace(folder: Path, driver_log: Path | None = None) -> CaptureTrace | None:
    """What the tracer wrote into ``folder``, None if it ran in no process.

    ``driver_log`` is the CUDA_LOG_FILE of the same run: it names calls of other threads and of
    native code. Lines that cannot be read are passed over.
    """
    processes = [_read_process(path) for path in trace_files(folder)]
    processes = [process for process in processes if process.pid is not None]
    if not processes:
        return None
    start = min(process.begun for process in processes)
    driver = read_driver_log(driver_log)
    owners = _owners(processes, {error.thread_id for error in driver})
    lines = [(process, line) for process in processes for line in _broken(process)]
    lines.sort(key=lambda pair: pair[1].get("time", start))
    found = [
        attribute(_offence(process, line, start), line, driver, _foreign(process, owners))
        for process, line in lines[:_MOST_OFFENCES]
    ]
    return CaptureTrace(
        offences=tuple(found),
        processes=len(processes),
        captures=sum(max(process.captures, len(process.ends)) for process in processes),
        faults=tuple(fault for process in processes for fault in process.faults),
    )


def _read_process(path: Path) -> _Process:
    process = _Process()
    for line in safe_lines(path):
        kind = line.get("kind")
        if kind == "installed":
            process.pid = line.get("pid", process.pid)
            process.name = line.get("process", process.name)
            process.begun = float(line.get("time", 0.0))
        elif kind == "offence":
            process.offences.append(line)
        elif kind == "suspect":
            process.suspects.append(line)
        elif kind == "ended":
            process.ends[line.get("number", 0)] = line
        elif kind == "captures":
            process.captures = int(line.get("count", 0))
        elif kind == "fault":
            process.faults.append(str(line.get("text", "")).strip())
    return process


def _broken(process: _Process) -> list[Line]:
    """What broke captures of a process, each in a line."""
    return [*process.offences, *_unresolved(process)]


def _owners(processes: list[_Process], asked: set[int]) -> dict[int, set[int]]:
    """Of the threads that are asked for: which processes are known to have them."""
    found: dict[int, set[int]] = {ident: set() for ident in asked}
    for process in processes if asked else ():
        for line in process.offences:
            for ident in asked & threads_of(line).keys():
                found[ident].add(id(process))
    return found


def _foreign(process: _Process, owners: dict[int, set[int]]) -> frozenset[int]:
    """The threads that other processes are known to have."""
    return frozenset(ident for ident, known in owners.items() if known - {id(process)})


def _unresolved(process: _Process) -> list[Line]:
    """What raised in captures of which no end is known: the process died inside.

    Of each the last whose exception is known, for what raised before it was caught; else the first.
    """
    known = {line.get("number") for line in process.offences} | set(process.ends)
    found: dict[Any, Line] = {}
    for line in process.suspects:
        number = line.get("number")
        if number not in known and (number not in found or line.get("error")):
            found[number] = line
    return list(found.values())


def _offence(process: _Process, line: Line, start: float) -> Offence:
    kind = offence_kind(line)
    call = call_of(line.get("call"))
    end = process.ends.get(line.get("number") or 0, {})
    raised = end.get("raised") or {}
    error = error_of(line.get("error"))
    if error is None and _same_line(raised.get("call"), line.get("call")):
        error = error_of(raised.get("error"))
    if kind is OffenceKind.UNSEEN and raised.get("in_thread"):
        kind, call = OffenceKind.OTHER_THREAD, call_of(raised.get("call"))
        error = error_of(raised.get("error"))
    earlier = line.get("earlier")
    return Offence(
        kind=kind,
        call=call,
        earlier=call_of(earlier) if earlier else None,
        error=error,
        end_error=error_of(end.get("error")),
        pid=process.pid,
        process=process.name,
        seconds=max(0.0, float(line.get("time", start)) - start),
    )


def _same_line(one: Any, other: Any) -> bool:
    """Whether two calls were made in the same line."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    ours, theirs = one.get("stack") or [], other.get("stack") or []
    return bool(ours) and list(ours[-1:]) == list(theirs[-1:])
