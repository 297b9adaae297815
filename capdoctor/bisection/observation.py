"""What one run saw, before anybody says what it means for the bisection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from capdoctor.model import Frame


class Saw(StrEnum):
    """How a run ended."""

    CLEAN = "clean"
    CRASH = "crash"
    HANG = "hang"
    UNBUILDABLE = "unbuildable"
    INFRA = "infra"


@dataclass(frozen=True, slots=True)
class Observation:
    """One run of a probe at a commit; it keeps enough to be judged against any reference.

    ``signature`` and ``loose`` are the two fingerprints of a crash, ``title`` what a person calls
    it, ``frames`` its traceback, innermost first. ``sticky``: the device may be broken until it
    is reset; ``suspect``: less likely so, but worth a look at the device if that is cheap.
    ``stop``: the probe asks to stop at once. ``seconds`` is the run itself, ``setup_seconds``
    what it took to set the commit up; ``starts`` counts engine starts.
    """

    saw: Saw
    signature: str | None = None
    loose: str | None = None
    title: str = ""
    stage: str | None = None
    crash_class: str | None = None
    root: Frame | None = None
    frames: tuple[Frame, ...] = ()
    sticky: bool = False
    suspect: bool = False
    stop: bool = False
    provisioning: str = "none"
    seconds: float = 0.0
    setup_seconds: float = 0.0
    starts: int = 0
    reason: str = ""
    log: str | None = None
