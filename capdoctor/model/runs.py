"""What is asked of an engine, and how its run went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from capdoctor.model.diagnosis import Diagnosis, Workaround
from capdoctor.model.gpus import GpuMemoryFacts
from capdoctor.model.jsonvalue import Json
from capdoctor.model.stages import Stage

if TYPE_CHECKING:  # few runs are traced
    from capdoctor.model.traces import CaptureTrace


class Outcome(StrEnum):
    """How a reproduction ended."""

    STARTED = "started"
    STOPPED_AFTER_STAGE = "stopped_after_stage"
    CRASHED = "crashed"
    HUNG = "hung"
    SETUP_FAILED = "setup_failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """Everything that decides how one engine is started; times in seconds.

    ``graph_mode`` is a CUDA graph mode that wins over what the arguments say, or ``EAGER``.
    ``environment`` holds variables for this run alone, over those of the caller.
    """

    kind: Literal["vllm", "embedded"]
    model: str
    python: Path | None = None
    source: Path | None = None
    device: Literal["cpu", "cuda"] = "cpu"
    as_torch: str | None = None
    tensor_parallel_size: int | None = None
    engine_args: Mapping[str, Json] = field(default_factory=dict)
    extra_args: tuple[str, ...] = ()
    shrink: bool = False
    stop_after: Stage | None = None
    timeout: float | None = None
    hang_after: float = 300.0
    trace: bool = False
    out: Path | None = None
    scenario: str | None = None
    graph_mode: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageSpan:
    """Seconds since the process started; ``end`` is None where it died or was stopped."""

    name: Stage
    start: float
    end: float | None


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How one engine process ended: ``exit 1``, ``SIGKILL``, ``unknown``...."""

    name: str
    pid: int
    end: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the process controller knows and a log cannot say; handed to the diagnosis.

    ``how`` says why the run ended; ``exit_code`` is negative for a signal, as in ``subprocess``.
    ``stage`` is the last stage that was seen to begin. ``driver_log`` is the CUDA_LOG_FILE.
    ``trace`` is what the capture tracer saw, None if there was none.
    """

    how: Literal["exited", "hung", "timed_out", "stopped_after_stage", "interrupted"] = "exited"
    exit_code: int | None = None
    stage: Stage | None = None
    processes: tuple[ProcessEnd, ...] = ()
    driver_log: Path | None = None
    engine: Literal["vllm", "embedded"] | None = None
    engine_version: str | None = None
    trace: CaptureTrace | None = None


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine ran: ``version`` and ``commit`` are None where they could not be read.

    ``device`` is the embedded engine's: ``virtual`` or ``cuda``.
    """

    kind: str
    version: str | None
    python: str | None
    commit: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run of several (``--repeat``)."""

    outcome: Outcome
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One graph mode of ``--matrix``.

    ``same_as`` names the run (``as asked`` or a mode) that this one comes down to: its outcome is
    that run's, ``seconds`` is what it took to see that.
    """

    mode: str
    outcome: Outcome
    crash_class: str | None
    seconds: float
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a reproduction went: the answer of ``repro``.

    ``changes`` are sentences on what differs from what was asked for, ``notes`` on what else is
    worth knowing of the run; ``trace`` is there under ``--trace``;
    ``gpu_memory`` is None for an engine that takes no NVIDIA GPU.
    """

    outcome: Outcome
    reason: str
    engine: EngineInfo
    command: tuple[str, ...]
    seconds: float
    stages: tuple[StageSpan, ...] = ()
    diagnosis: Diagnosis | None = None
    runs: tuple[RunSummary, ...] = ()
    matrix: tuple[MatrixRow, ...] = ()
    workarounds_verified: tuple[Workaround, ...] = ()
    processes: tuple[ProcessEnd, ...] = ()
    artifacts: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    trace: CaptureTrace | None = None
    notes: tuple[str, ...] = ()
    gpu_memory: GpuMemoryFacts | None = None
