"""What every probe is given and what it gives back."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation


class Cancelled(Exception):
    """The run was ended because its verdict is of no use any more."""


@dataclass(frozen=True, slots=True)
class Place:
    """One commit to be probed by one worker.

    ``out`` is the folder for the run's files; ``devices`` the visible devices, None for all.
    ``stage`` is where the crash that is looked for happens, if that is known. A probe that waits
    for something looks at ``cancelled`` now and then.
    """

    sha: str
    mirror: Mirror
    worktrees: Path
    out: Path
    worker: int = 0
    devices: str | None = None
    stage: str | None = None
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False)


def visible_devices(place: Place) -> dict[str, str]:
    """Return the variables that keep a worker to its own devices, on CUDA and on ROCm."""
    if place.devices is None:
        return {}
    return dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), place.devices)


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
            Cancelled: it was asked to end early.
            KeyboardInterrupt: the user stopped it; everything it started is gone.
        """
        ...
