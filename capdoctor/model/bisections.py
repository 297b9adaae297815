"""What a bisection found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BisectAnswer(StrEnum):
    """The kinds of answer."""

    CULPRIT = "CULPRIT"
    CULPRIT_UNCONFIRMED = "CULPRIT_UNCONFIRMED"
    RANGE = "RANGE"
    OUTSIDE_RANGE = "OUTSIDE_RANGE"
    NO_CULPRIT = "NO_CULPRIT"
    DEPENDENCY = "DEPENDENCY"


class ProbeVerdict(StrEnum):
    """The verdict of one run at one commit. INFRA pauses and never votes."""

    GOOD = "good"
    BAD = "bad"
    OTHER = "other"
    HANG = "hang"
    UNBUILDABLE = "unbuildable"
    INFRA = "infra"


@dataclass(frozen=True, slots=True)
class Culprit:
    """The commit that introduced the crash; ``author_date`` is ISO 8601."""

    sha: str
    title: str
    pr: str | None
    author_date: str


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """One run. ``signature`` is the fingerprint it crashed with, if it crashed."""

    sha: str
    verdict: ProbeVerdict
    signature: str | None
    provisioning: str
    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Island:
    """A run of commits that cannot be judged, and why."""

    first: str
    last: str
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class BisectResult:
    """The answer of ``bisect``; ``seconds`` is wall time, ``confidence`` between 0 and 1."""

    answer: BisectAnswer
    culprit: Culprit | None
    candidates: tuple[str, ...]
    confidence: float
    signature: str | None
    range_size: int
    runs: int
    engine_starts: int
    seconds: float
    probes: tuple[ProbeRun, ...] = ()
    islands: tuple[Island, ...] = ()
    resume_command: str | None = None
    reasons: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
