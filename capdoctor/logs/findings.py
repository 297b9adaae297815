"""What single lines give away, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from capdoctor.logs.exceptions import StackFrame
from capdoctor.logs.streams import StreamId
from capdoctor.model import Stage


@dataclass(frozen=True, slots=True)
class NativeEvent:
    """A line that native code, the kernel or a shell wrote about a failure.

    ``kind`` is the id of a sign of ``data/signs.toml``. ``message`` is the error text in it,
    ``file`` and ``lineno`` the native source, ``api`` the call, ``code`` a number
    that it names (error, Xid).
    """

    kind: str
    line: int
    stream: StreamId
    text: str
    message: str = ""
    file: str | None = None
    lineno: int | None = None
    api: str | None = None
    code: int | None = None
    pid: int | None = None
    frames: tuple[StackFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class Death:
    """A line that says that a process ended. ``exit_code`` is negative for a signal.

    ``process`` is the name as the line has it. ``exit_code`` is None where the line gives none;
    0 is a death too. ``source`` is the id of a sign of ``data/signs.toml``.
    """

    source: str
    line: int
    stream: StreamId
    text: str
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    exit_code: int | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A sign that someone stopped the engine, or that it is shutting down."""

    kind: Literal["ctrl_c", "keyboard_interrupt", "signal", "shutdown"]
    line: int
    stream: StreamId
    text: str
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class StageMark:
    """A line that places the engine in its start-up.

    ``stage`` is the stage of the process that wrote the line, ``reached`` that of the whole
    engine: a slow rank reports an earlier stage late. ``ended`` is the stage that this line ends,
    if it ends one. ``marker`` is the id in ``data/stages.toml``. ``certain`` is False for a
    capture bar with nothing before it that tells profiling from capturing.
    """

    stage: Stage
    line: int
    stream: StreamId
    marker: str
    text: str = ""
    ended: Stage | None = None
    certain: bool = True
    reached: Stage = Stage.IMPORT


@dataclass(frozen=True, slots=True)
class CaptureBar:
    """Where a progress bar of graph capture stood: ``done`` of ``total``; ``size`` if printed.

    ``mode`` is the text in its brackets (``PIECEWISE``, ``decode, FULL``, ``bs=160 ...``).
    ``size`` is the batch size under way: SGLang prints it.
    """

    line: int
    stream: StreamId
    label: str
    mode: str
    done: int
    total: int
    stage: Stage
    size: int | None = None


@dataclass(frozen=True, slots=True)
class VersionHint:
    """A version that the log prints: ``package`` lower case (``vllm``, ``torch``, ``nccl``...)."""

    package: str
    value: str
    how: str
    line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where in the engine's source a record was logged: it gives the release away."""

    file: str
    lineno: int
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class AllocatorAssert:
    """An INTERNAL ASSERT of torch: expression, file and line give the torch version away."""

    expression: str
    file: str
    lineno: int
    line: int


@dataclass(frozen=True, slots=True)
class EngineArgs:
    """What the engine was started with; each value as the log prints it (``'x'``, ``0.35``)."""

    source: Literal["non_default_args", "server_args", "namespace", "engine_config", "command"]
    line: int
    text: str
    values: Mapping[str, str] = field(default_factory=dict)
