"""At which stage of the start-up an incident was raised."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from capdoctor.diagnosis.frames import path_of
from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.tables import table
from capdoctor.logs import Run, StackFrame
from capdoctor.model import STAGE_ORDER, Stage


@dataclass(frozen=True, slots=True)
class StageClaim:
    """A stage and how it is known; ``line`` is where the log says so, 0 where a frame does."""

    stage: Stage | None
    how: Literal["frame", "mark", "import", "class", "facts", "nothing"]
    line: int = 0
    text: str = ""


# What an executor writes above the error of a call that it made for a worker.
_CALL = re.compile(r"(?:while processing method|Error executing method) '?(?P<method>\w{1,80})")
NO_STAGE = StageClaim(None, "nothing")
_CAPTURE_CODES = frozenset(range(900, 909))
# The capture that comes next after a stage's lines.
_CAPTURE_AFTER = {
    Stage.PROFILE_RUN: Stage.PROFILE_CUDAGRAPH_MEMORY,
    Stage.KV_CACHE: Stage.CAPTURE,
    Stage.WARMUP: Stage.CAPTURE,
}


def stage_of(incident: Incident, relatives: Iterable[Incident], run: Run) -> StageClaim:
    """Tell the stage by the frames of the incident and of its chain, else by the last stage line.

    ``relatives`` are the incidents of the same chain: an inner exception's traceback starts where
    it was caught, so the outer one holds the frames above.
    """
    marked = _by_mark(incident, run)
    for frames in (incident.frames, *(other.frames for other in relatives)):
        claim = _by_frames(frames, marked)
        if claim.stage is not None:
            return claim
    claim = _by_call(incident, marked)
    if claim.stage is not None:
        return claim
    early = marked.stage in {None, Stage.IMPORT}
    if early and _is_import(incident.frames):
        return StageClaim(Stage.IMPORT, "import", text="an import was under way")
    return _inside_a_capture(incident, marked)


def is_of_startup(frames: tuple[StackFrame, ...]) -> bool:
    """Whether a function on the stack runs at start-up only."""
    return _by_frames(frames, NO_STAGE).stage is not None


def _inside_a_capture(incident: Incident, marked: StageClaim) -> StageClaim:
    """What the driver says of captures happens in one, though its first line was not printed."""
    code = incident.driver.code if incident.driver is not None else None
    stage = _CAPTURE_AFTER.get(marked.stage) if marked.stage is not None else None
    if code not in _CAPTURE_CODES or stage is None:
        return marked
    return replace(marked, stage=stage)


def went_on(incident: Incident, claim: StageClaim, run: Run) -> bool:
    """Whether the process of an incident reached a later stage after it: it was survived."""
    at = STAGE_ORDER.index(claim.stage) if claim.stage is not None else 0
    return any(
        STAGE_ORDER.index(mark.stage) > at
        for mark in run.marks
        if mark.line > incident.last_line and mark.certain
        if not incident.stream.named or mark.stream.same_process(incident.stream)
    )


def _by_frames(frames: tuple[StackFrame, ...], marked: StageClaim) -> StageClaim:
    calls = [frame for frame in frames if frame.function != "<module>"]
    for stage, globs, *inside in table("stage_frames")["rows"]:
        hit = next((f for f in calls if frame_fits(path_of(f), f.function, tuple(globs))), None)
        if hit is None:
            continue
        if inside and marked.stage is not None and marked.stage.value in inside[0]:
            return marked
        return StageClaim(Stage(stage), "frame", text=f"{hit.function} is on the stack")
    return NO_STAGE


def _by_call(incident: Incident, marked: StageClaim) -> StageClaim:
    """Tell the stage by the worker's method that a record names, as if it stood on the stack."""
    call = _CALL.search(incident.headline)
    if call is None:
        return NO_STAGE
    frame = StackFrame("", None, call["method"], path="vllm/v1/worker/worker_base.py")
    return _by_frames((frame,), marked)


def _by_mark(incident: Incident, run: Run) -> StageClaim:
    stage = run.stage_at(incident.line, incident.stream if incident.stream.named else None)
    if stage is None:
        return NO_STAGE
    before = [m for m in run.marks if m.line < incident.line and m.stage is stage]
    if not before:
        return StageClaim(stage, "mark")
    return StageClaim(stage, "mark", before[-1].line, before[-1].text)


def _is_import(frames: tuple[StackFrame, ...]) -> bool:
    globs = tuple(table("stage_frames")["import_frames"])
    modules = [f for f in frames if f.function == "<module>"]
    return len(modules) > 1 and frame_fits(path_of(frames[-1]), frames[-1].function, globs)
