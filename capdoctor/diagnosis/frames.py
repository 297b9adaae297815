"""Which frame of a traceback someone can act on (spec: taxonomy, "Root frame")."""

from __future__ import annotations

from functools import lru_cache

from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.tables import table
from capdoctor.logs import StackFrame
from capdoctor.model import Frame


@lru_cache(maxsize=1)
def _skipped() -> tuple[str, ...]:
    data = table("frames")
    parts = ("torch_plumbing", "libraries", "engine_plumbing", "own")
    return tuple(glob for part in parts for glob in data[part])


@lru_cache(maxsize=1)
def _stdlib() -> tuple[str, ...]:
    return tuple(table("frames")["stdlib"])


def path_of(frame: StackFrame) -> str:
    """The file from the package on."""
    return frame.path or frame.file


def is_stdlib(frame: StackFrame) -> bool:
    """Whether the frame is Python's own library."""
    inside_python = "/lib/python3" in frame.file or "/lib64/python3" in frame.file
    if inside_python and "-packages/" not in frame.file:
        return True
    return frame_fits(frame.file, frame.function, _stdlib())


def is_actionable(frame: StackFrame) -> bool:
    """Whether the frame is outside the standard library and every kind of plumbing."""
    return not is_stdlib(frame) and not frame_fits(path_of(frame), frame.function, _skipped())


def as_frame(frame: StackFrame) -> Frame:
    """The frame as a diagnosis shows it."""
    return Frame(path_of(frame), frame.line, frame.function)


def actionable(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
    """Those frames of a traceback that someone can act on; all of them if none is."""
    chosen = tuple(frame for frame in frames if is_actionable(frame))
    return chosen or tuple(frame for frame in frames if not is_stdlib(frame)) or frames


def root_frame(incident: Incident) -> Frame | None:
    """The innermost actionable frame, or the native place that the log names."""
    if incident.frames:
        return as_frame(actionable(incident.frames)[-1])
    return _native_place(incident)


def raised_at(incident: Incident) -> Frame | None:
    """The very innermost frame."""
    if incident.frames:
        return as_frame(incident.frames[-1])
    return _native_place(incident)


def _native_place(incident: Incident) -> Frame | None:
    event = incident.event
    if event is not None and event.file:
        return Frame(_native_path(event.file), event.lineno, event.api)
    for frame in incident.native_frames or (event.frames if event else ()):
        if frame.line is not None and frame.file and not _is_interpreter(frame):
            return Frame(_native_path(path_of(frame)), frame.line, frame.function)
    return None


def _is_interpreter(frame: StackFrame) -> bool:
    # The C library's, the crash handler's and the interpreter's own frames hold no cause.
    return any(name in frame.file for name in table("frames")["interpreter"])


def _native_path(file: str) -> str:
    """A native source from its ``csrc`` folder on, else as logged."""
    at = file.find("csrc/")
    return file[at:] if at > 0 and "deps" not in file else file
