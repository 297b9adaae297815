"""The fingerprint of a crash: the same for the same crash, whoever's machine it happened on.

It is made of the root alone: platform, error, stage and the innermost functions of the engine's or
the user's own code. Line numbers, paths, ranks, pids and versions do not enter. ``s1`` names this
recipe; a change of the recipe gets another name, so that old fingerprints never move. ``t1`` is the
same of an operation that only the tracer saw: no log alone can have it.
"""

from __future__ import annotations

import hashlib
import re

from capdoctor.diagnosis.driver_errors import platform_of
from capdoctor.diagnosis.frames import is_actionable, path_of
from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import StackFrame
from capdoctor.model import Stage

_DEPTH = 3
_SAID = 80
_CAPTURING = {Stage.CAPTURE, Stage.PROFILE_CUDAGRAPH_MEMORY}
_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f-]{27,}|(?<![\w.])/[^\s'\"]+|\d+(?:\.\d+)*|'[^']*'|\"[^\"]*\""
)
_GENERATED = re.compile(r"\d+|[0-9a-f]{12,}")
_PACKAGE = re.compile(r"[A-Za-z_]\w*(?:/[\w.-]+)*\.(?:pyx?|cuh?|cc|cpp|h)$")


def normalised_message(message: str) -> str:
    """The first line of a message without numbers, paths, addresses and quoted values."""
    return " ".join(_VARYING.sub("#", message.split("\n", 1)[0]).split())[:200]


def module_of(frame: StackFrame) -> str:
    """``vllm.v1.worker.gpu_worker:init_device``; a file outside any package by its name alone."""
    path = path_of(frame)
    if "torchinductor" in path:
        return "inductor:" + _GENERATED.sub("", frame.function or "")
    if path.startswith("/") or not _PACKAGE.match(path):
        path = path.rsplit("/", 1)[-1]
    return f"{path.removesuffix('.py').replace('/', '.')}:{frame.function or '?'}"


def error_of(incident: Incident) -> str:
    """The driver's short name where there is one, else the type of the exception or signal."""
    if incident.driver is not None and incident.driver.short:
        return incident.driver.short
    return incident.short_type or (incident.event.kind if incident.event else "?")


def fingerprints(incident: Incident, stage: Stage | None, name: str = "s1") -> tuple[str, str]:
    """Give the exact fingerprint and the looser one (error and stage only)."""
    platform = platform_of(incident.text) or "any"
    error = error_of(incident)
    places = [module_of(frame) for frame in incident.frames if is_actionable(frame)][-_DEPTH:]
    if not places:
        places = [_native_place(incident) or normalised_message(incident.message)]
    said = _said(incident)
    exact = "|".join([platform, error, stage or "-", *said, *places])
    family = "capture" if stage in _CAPTURING else (stage or "-")
    return _digest(name, exact), _digest(f"{name}~", f"{error}|{family}")


def _said(incident: Incident) -> list[str]:
    """The message of an error that no code names: one function may raise many."""
    if incident.kind != "python" or (incident.driver is not None and incident.driver.short):
        return []
    lines = [line for line in incident.message.split("\n") if line.strip()]
    wrapper = bool(lines) and "validation error" in lines[0]
    text = lines[1] if wrapper and len(lines) > 1 else "".join(lines[:1])
    return [normalised_message(text).split(". ", 1)[0][:_SAID]]


def _native_place(incident: Incident) -> str:
    event = incident.event
    return event.file.rsplit("/", 1)[-1] if event is not None and event.file else ""


def _digest(name: str, text: str) -> str:
    return f"{name}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
