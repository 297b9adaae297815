"""What is shown while an engine runs."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from capdoctor.model import Stage
from capdoctor.report.progress import LiveProgress, PlainProgress


@dataclass(frozen=True)
class Bar:
    label: str
    done: int
    total: int


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Unwritable(io.StringIO):
    def write(self, _text: str) -> int:
        raise OSError(28, "No space left on device")


def play(display: PlainProgress | LiveProgress) -> None:
    display.run_began(Path("/runs/x"), "vLLM 0.33, m[rank0]")
    display.stage_began(Stage.IMPORT, 0.0)
    display.stage_ended(Stage.IMPORT, 12.5)
    display.stage_began(Stage.CAPTURE, 12.5)
    display.bar_moved(Bar("Capturing CUDA graphs", 3, 8), 13.0)
    display.line_printed("\x1b]0;title\x07[bold]rank[/bold] [rank0]", 13.5)
    display.time_passed(14.0)
    display.run_ending("the engine is ready")
    display.close()


def test_a_pipe_gets_a_line_a_stage_and_no_escapes() -> None:
    stream = io.StringIO()
    play(PlainProgress(stream))
    assert stream.getvalue() == (
        "vLLM 0.33, m[rank0]; files in /runs/x\n[0.0 s] import\n[12.5 s] capture\n"
        "ending: the engine is ready\n"
    )


def test_a_terminal_shows_stages_bar_and_last_line_and_is_left_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    play(LiveProgress(stream))
    shown = stream.getvalue()
    for part in ("import", "12.5 s", "capture", "Capturing CUDA graphs 3/8", "[rank0]", "ready"):
        assert part in shown
    assert "\x1b]0;" not in shown
    assert "\x1b[?25h" in shown[shown.rindex("\x1b[?25l") :]  # the cursor is back
    assert shown.endswith(("\x1b[2K", "\r", "A"))  # and what was drawn is erased


def test_a_display_that_never_began_can_be_closed() -> None:
    LiveProgress(Terminal()).close()


def test_a_flood_of_lines_is_not_drawn_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    display = LiveProgress(Terminal())
    drawn: list[object] = []
    monkeypatch.setattr(display._live, "update", drawn.append)
    for number in range(10_000):
        display.line_printed(f"line {number}", 1.0)
    display.time_passed(1.25)
    assert len(drawn) == 1


class LostTerminal(Unwritable, Terminal):
    """A terminal whose window was closed."""


def test_a_progress_that_nobody_can_read_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    play(PlainProgress(Unwritable()))
    play(LiveProgress(LostTerminal()))
