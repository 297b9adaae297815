"""A probe that looks a commit's fate up: for the loop around it, which is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.probe import Cancelled, Place
from capdoctor.model import Frame

Fate = Callable[[str, int], Observation]


def crash(signature: str = "s1:ours", **more: object) -> Observation:
    """Return a run that crashed."""
    options: dict[str, object] = {"title": f"it crashed ({signature})", "seconds": 1.0, **more}
    return Observation(Saw.CRASH, signature, **options)  # type: ignore[arg-type]


def clean() -> Observation:
    """Return a run that did not crash."""
    return Observation(Saw.CLEAN, seconds=1.0)


def unbuildable(reason: str = "it does not build") -> Observation:
    """Return a run that never got anywhere."""
    return Observation(Saw.UNBUILDABLE, reason=reason, seconds=0.1)


def infra(reason: str = "GPU 0 is lost", **more: bool) -> Observation:
    """Return a run that the machine spoilt."""
    return Observation(Saw.INFRA, reason=reason, **more)


@dataclass
class StubProbe:
    """``fate`` says what the n-th run of a commit sees; ``ran`` records every call.

    A ``slow`` commit's run only ends when it is cancelled, or after ten seconds.
    """

    fate: Fate
    ran: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    slow: frozenset[str] = frozenset()
    cancelled: list[str] = field(default_factory=list)
    name: str = "stub"

    def check(self, mirror: Mirror, sha: str) -> None:
        """Whatever the repository is, it will do."""

    def run(self, place: Place) -> Observation:
        """Return the commit's fate."""
        self.ran.append(place.sha)
        self.places.append(place)
        if place.sha in self.slow and place.cancelled.wait(10):
            self.cancelled.append(place.sha)
            raise Cancelled
        return self.fate(place.sha, self.ran.count(place.sha))


def from_culprit(
    shas: tuple[str, ...], culprit: int, others: Mapping[int, Observation] | None = None
) -> Fate:
    """Return the fate of a history in which commit ``culprit`` and all later ones crash."""
    number = {sha: at for at, sha in enumerate(shas)}

    def fate(sha: str, _run: int) -> Observation:
        at = number[sha]
        if others and at in others:
            return others[at]
        return crash() if at >= culprit else clean()

    return fate


def traceback(*places: tuple[str, str, int]) -> tuple[Frame, ...]:
    """Return frames, innermost first, from (file, function, line)."""
    return tuple(Frame(file, line, function) for file, function, line in places)


def work(tmp_path: Path) -> Path:
    """Return a work folder for a bisection."""
    return tmp_path / "work"
