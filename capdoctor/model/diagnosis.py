"""What a log says. ``crash_class`` is written ``class`` in the JSON contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from capdoctor.model.jsonvalue import Json
from capdoctor.model.stages import Stage

if TYPE_CHECKING:  # it is made of values of this module
    from capdoctor.model.traces import Offence

Confidence = Literal["confirmed", "likely", "possible", "unknown"]


class Verdict(StrEnum):
    """What kind of log or run it was."""

    STARTUP_CRASH = "startup_crash"
    SERVING_CRASH = "serving_crash"
    CLEAN_STARTUP = "clean_startup"
    USER_INTERRUPT = "user_interrupt"
    STARTUP_HANG = "startup_hang"
    ROOT_CAUSE_NOT_IN_LOG = "root_cause_not_in_log"
    NOT_AN_ENGINE_LOG = "not_an_engine_log"


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback; ``file`` from the package on (``vllm/v1/...``), else as logged."""

    file: str
    line: int | None
    function: str | None


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """The root error. ``code`` and ``name`` are the driver's, where the log gives them away."""

    type: str | None
    message: str
    code: int | None = None
    name: str | None = None
    api: str | None = None
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """The process that raised the root error, as the log names it."""

    name: str | None = None
    pid: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the given file (1-based) and why it counts.

    What comes from the driver's own log or from the tracer has line 0 and says so in ``source``.
    """

    line: int
    text: str
    why: str
    source: Literal["log", "driver_log", "trace"] = "log"


@dataclass(frozen=True, slots=True)
class FollowOn:
    """An error that another one explains."""

    type: str | None
    message: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class VersionClaim:
    """A version and how it is known: ``read: ...`` or ``inferred: ...``."""

    value: str
    source: str


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """A public report of the same crash."""

    url: str
    title: str
    introduced_by: str | None = None
    fixed_in: str | None = None


@dataclass(frozen=True, slots=True)
class Workaround:
    """Something that gets the user going, and what it costs."""

    do: str
    cost: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a log says: the answer of ``classify`` and a part of the answer of ``repro``.

    ``cause`` is the sentence that explains the class; ``extra`` holds findings beyond the contract
    (failing graph size, ranks that crashed, engine arguments), each JSON-ready. ``trace`` is the
    operation that broke the capture, where the tracer saw it.
    """

    verdict: Verdict
    crash_class: str
    stage: Stage | None
    component: str | None
    error: ErrorInfo | None
    root_frame: Frame | None
    raised_at: Frame | None
    process: ProcessRef
    confidence: Confidence
    cause: str = ""
    evidence: tuple[Evidence, ...] = ()
    follow_on: tuple[FollowOn, ...] = ()
    versions: Mapping[str, VersionClaim] = field(default_factory=dict)
    known_issue: KnownIssue | None = None
    workarounds: tuple[Workaround, ...] = ()
    fix: str | None = None
    fingerprint: str | None = None
    fingerprint_loose: str | None = None
    next: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    trace: Offence | None = None
