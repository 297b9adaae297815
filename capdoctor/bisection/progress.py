"""What a bisection tells while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from capdoctor.model import ProbeVerdict


@dataclass(frozen=True, slots=True)
class Planned:
    """The range is known: ``commits`` in it, and the notes on how it was found."""

    commits: int
    work_dir: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Testing:
    """A commit is being run. ``left`` runs and ``minutes`` are estimates, None if unknown."""

    sha: str
    title: str
    purpose: str
    candidates: int
    left: int
    minutes: float | None
    picture: str


@dataclass(frozen=True, slots=True)
class Tested:
    """A commit was run."""

    sha: str
    purpose: str
    verdict: ProbeVerdict
    reason: str
    seconds: float


class BisectListener(Protocol):
    """Told about a bisection, in the thread that called it."""

    def planned(self, plan: Planned) -> None:
        """The range is known; nothing has run yet."""

    def testing(self, what: Testing) -> None:
        """A run begins."""

    def tested(self, what: Tested) -> None:
        """A run has ended and is in the journal."""

    def noted(self, sentence: str) -> None:
        """Something that the user should know."""


class Silent:
    """A listener that wants to know nothing."""

    def planned(self, plan: Planned) -> None:
        """Ignore it."""

    def testing(self, what: Testing) -> None:
        """Ignore it."""

    def tested(self, what: Tested) -> None:
        """Ignore it."""

    def noted(self, sentence: str) -> None:
        """Ignore it."""
