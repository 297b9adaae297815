"""What every probe is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation


@dataclass(frozen=True, slots=True)
class Place:
    """One commit to be probed by one worker.

    ``out`` is the folder for the run's files; ``devices`` the visible devices, None for all.
    """

    sha: str
    mirror: Mirror
    worktrees: Path
    out: Path
    worker: int = 0
    devices: str | None = None


class Probe(Protocol):
    """Runs something at a commit, once."""

    @property
    def name(self) -> str:
        """The probe as the user wrote it."""
        ...

    def check(self, mirror: Mirror, sha: str) -> None:
        """Refuse what cannot work at the newer end, before anything runs.

        Raises:
            CannotDo: with what is missing.
        """
        ...

    def run(self, place: Place) -> Observation:
        """Return what a run at the commit saw.

        Raises:
            CannotDo: the machine, not the commit, stands in the way.
            KeyboardInterrupt: the user stopped it; everything it started is gone.
        """
        ...
