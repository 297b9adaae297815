"""What a run tells while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from capdoctor.model import Stage


@dataclass(frozen=True, slots=True)
class BarState:
    """The state of a progress bar of graph capture: ``done`` of ``total`` graphs of a mode."""

    label: str
    mode: str
    done: int
    total: int


class RunListener(Protocol):
    """Told about a run, in the thread that runs it; ``seconds`` count from the engine's start.

    What a listener raises ends the run, with everything cleaned up, and goes on to the caller.
    """

    def run_began(self, folder: Path, title: str) -> None:
        """A run begins; ``title`` says which one where there are several (``eager``, ``2/5``)."""

    def stage_began(self, stage: Stage, seconds: float) -> None:
        """The engine entered a stage."""

    def stage_ended(self, stage: Stage, seconds: float) -> None:
        """The engine left a stage alive."""

    def bar_moved(self, bar: BarState, seconds: float) -> None:
        """Graphs are being captured."""

    def line_printed(self, line: str, seconds: float) -> None:
        """The engine printed a line; it is a stranger's text, with whatever is in it."""

    def time_passed(self, seconds: float) -> None:
        """Nothing else to tell: about four times a second."""

    def run_ending(self, why: str) -> None:
        """The engine is being ended, for this reason."""


class Quiet:
    """A listener that wants to know nothing."""

    def run_began(self, folder: Path, title: str) -> None:
        """Ignore it."""

    def stage_began(self, stage: Stage, seconds: float) -> None:
        """Ignore it."""

    def stage_ended(self, stage: Stage, seconds: float) -> None:
        """Ignore it."""

    def bar_moved(self, bar: BarState, seconds: float) -> None:
        """Ignore it."""

    def line_printed(self, line: str, seconds: float) -> None:
        """Ignore it."""

    def time_passed(self, seconds: float) -> None:
        """Ignore it."""

    def run_ending(self, why: str) -> None:
        """Ignore it."""
