"""What a running engine is doing, on stderr: a live line on a terminal, plain lines elsewhere.

Satisfies the listener that the engines call, without importing them. A stream that cannot be
written (a full disk, a closed terminal) silences the display; the run and its answer go on.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TextIO

from capdoctor.model import Stage
from capdoctor.report.safe_text import one_line

_LINE_LIMIT = 100
_LINE_LIMIT_READ = 1000


class Bar(Protocol):
    """A progress bar of graph capture, as a listener is told of it."""

    @property
    def label(self) -> str:
        """What the bar calls itself."""

    @property
    def done(self) -> int:
        """Graphs captured so far."""

    @property
    def total(self) -> int:
        """Graphs to capture."""


class PlainProgress:
    """One line when a stage begins or ends; nothing else, so that a log of CI stays short."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def run_began(self, folder: Path, title: str) -> None:
        """Say what was started and where its files go."""
        self._say(f"{title}; files in {folder}")

    def stage_began(self, stage: Stage, seconds: float) -> None:
        """Say that a stage began."""
        self._say(f"[{seconds:.1f} s] {stage.value}")

    def stage_ended(self, stage: Stage, seconds: float) -> None:
        """Leave it at the next stage's beginning."""

    def bar_moved(self, bar: Bar, seconds: float) -> None:
        """Leave the capture bar out."""

    def line_printed(self, line: str, seconds: float) -> None:
        """Leave the engine's own lines to its log."""

    def time_passed(self, seconds: float) -> None:
        """Leave the clock out."""

    def run_ending(self, why: str) -> None:
        """Say why the run is being ended."""
        self._say(f"ending: {why}")

    def close(self) -> None:
        """Nothing is held."""

    def _say(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(one_line(text) + "\n")
            self._stream.flush()


class LiveProgress:
    """A live display: passed stages with their seconds, the running one, the capture bar."""

    def __init__(self, stream: TextIO | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream or sys.stderr, highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, refresh_per_second=8, transient=True)
        self._title = ""
        self._passed: list[tuple[Stage, float]] = []
        self._stage: Stage | None = None
        self._begin = self._now = 0.0
        self._bar = self._line = ""

    def run_began(self, folder: Path, title: str) -> None:
        """Start the display of one run; repeats start it anew."""
        self._title = f"{title}; files in {folder}"
        self._passed, self._stage = [], None
        self._begin = self._now = 0.0
        with suppress(OSError):
            self._live.start()
        self._draw()

    def stage_began(self, stage: Stage, seconds: float) -> None:
        """Show the stage as the running one."""
        self._stage, self._begin, self._now, self._bar = stage, seconds, seconds, ""
        self._draw()

    def stage_ended(self, stage: Stage, seconds: float) -> None:
        """Show the stage as passed."""
        self._passed.append((stage, seconds - self._begin))
        self._stage, self._now = None, seconds
        self._draw()

    def bar_moved(self, bar: Bar, seconds: float) -> None:
        """Show how many graphs are captured."""
        self._bar, self._now = f"{one_line(bar.label, 40)} {bar.done}/{bar.total}", seconds
        self._draw()

    def line_printed(self, line: str, seconds: float) -> None:
        """Show the engine's last line at the next tick: it may print thousands a second."""
        self._line, self._now = one_line(line[:_LINE_LIMIT_READ], _LINE_LIMIT), seconds

    def time_passed(self, seconds: float) -> None:
        """Move the clock."""
        self._now = seconds
        self._draw()

    def run_ending(self, why: str) -> None:
        """Show why the run is being ended."""
        self._line = one_line(f"ending: {why}", _LINE_LIMIT)
        self._draw()

    def close(self) -> None:
        """Take the display off the terminal, if that is still there."""
        with suppress(OSError):
            self._live.stop()

    def _draw(self) -> None:
        from rich.text import Text

        text = Text(one_line(self._title) + "\n", style="bold")
        for stage, took in self._passed:
            text.append(f"  {stage.value:<26}{took:7.1f} s\n", style="green")
        if self._stage is not None:
            running = f"> {self._stage.value:<26}{self._now - self._begin:7.1f} s  {self._bar}\n"
            text.append(running, style="bold cyan")
        text.append(self._line, style="dim")
        with suppress(OSError):
            self._live.update(text)


def progress() -> PlainProgress | LiveProgress:
    """Give the display that fits stderr."""
    return LiveProgress() if sys.stderr.isatty() else PlainProgress()
