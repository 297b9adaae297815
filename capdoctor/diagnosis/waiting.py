"""Where a hung engine waits: the stacks that its processes printed when they were ended.

A run that hangs is ended by SIGABRT, and every Python process prints its threads. A process that
only waits for another one says nothing about why.
"""

from __future__ import annotations

from pathlib import Path

from capdoctor.diagnosis.frames import actionable, as_frame, path_of
from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.incident import Role
from capdoctor.diagnosis.roles import role_of
from capdoctor.diagnosis.tables import table
from capdoctor.errors import CannotDo
from capdoctor.logs import ExceptionNode, Origin, read_log
from capdoctor.model import Frame

_DEEPEST_FIRST: tuple[Role, ...] = ("worker", "engine", "unknown", "frontend")


def waiting_at(stacks: Path | None) -> Frame | None:
    """Give the innermost actionable frame of the process that the others wait for.

    ``stacks`` is what was printed after the engine was told to end. None where it is not there, or
    holds no stack of a main thread.
    """
    if stacks is None:
        return None
    try:
        runs = read_log(stacks).runs
    except CannotDo:
        return None
    dumps = [
        node for run in runs for node in run.nodes if node.origin is Origin.HANDLER and node.frames
    ]
    dumps.sort(key=_distance)
    return as_frame(actionable(dumps[0].frames)[-1]) if dumps else None


def _distance(node: ExceptionNode) -> tuple[bool, int]:
    """How far a process is from the cause: those that wait for another one come last."""
    frame = actionable(node.frames)[-1]
    waits = frame_fits(path_of(frame), frame.function, tuple(table("frames")["waits_for_another"]))
    return waits, _DEEPEST_FIRST.index(role_of(node))
