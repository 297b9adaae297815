"""What one engine process was allowed, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from capdoctor.model import Stage, StageSpan

How = Literal["exited", "ready", "stopped_after_stage", "hung", "timed_out", "interrupted", "lost"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When to end a run that does not end by itself; times in seconds."""

    stop_after: Stage | None
    timeout: float | None
    hang_after: float


@dataclass(frozen=True, slots=True)
class Departure:
    """A process that ended: seconds since the start, wait status, whether it was being ended."""

    pid: int
    title: str
    seconds: float
    status: int | None
    by_us: bool


@dataclass(slots=True)
class Ended:
    """How a run went.

    ``why`` is a clause for people; ``left`` are processes that could not be ended (stuck in the
    kernel); ``names`` and ``codes`` are what the log tells about processes.
    """

    how: How
    why: str
    seconds: float
    main_pid: int | None
    stage: Stage
    spans: tuple[StageSpan, ...]
    departures: list[Departure] = field(default_factory=list)
    left: tuple[int, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)
    failed_to_start: str | None = None
    last_line: str = ""
