"""Writes a log as engines of vLLM 0.31 and newer do: the process stands on every line."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TextIO

PROCESS = "EngineCore"
_BAR = 10


class EngineLog:
    """One process's log on one stream. ``file.py:LINE`` is the place of the caller."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._who = f"({PROCESS} pid={os.getpid()})"

    def record(self, message: str) -> None:
        """Write one record."""
        self._write("INFO", message, _place())

    def failure(self, trace: str) -> None:
        """Write the end of an engine that could not start, with the traceback of its error."""
        self._write("ERROR", "EngineCore failed to start.", _place())
        self._write("ERROR", trace.rstrip("\n") + "\n", _place())

    def _write(self, level: str, message: str, place: str) -> None:
        head = f"{self._who} {level} {time.strftime('%m-%d %H:%M:%S')} [{place}] "
        self._stream.write("".join(f"{head}{line}\n" for line in message.split("\n")))
        self._stream.flush()

    def bar(self, title: str, total: int) -> CaptureBar:
        """Begin a progress bar as tqdm draws it."""
        return CaptureBar(self._stream, f"{self._who} {title}", total)


class CaptureBar:
    """A bar that redraws itself with carriage returns; one state for each finished item."""

    def __init__(self, stream: TextIO, title: str, total: int) -> None:
        self._stream, self._title, self._total = stream, title, total
        self._done = 0
        self._began = time.perf_counter()
        self._draw()

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        self._draw()

    def close(self) -> None:
        """End the line, finished or not."""
        self._stream.write("\n")
        self._stream.flush()

    def _draw(self) -> None:
        share = self._done / self._total
        filled = "█" * int(share * _BAR)
        seconds = time.perf_counter() - self._began
        rate = f"{self._done / seconds:5.2f}it/s" if self._done and seconds else "?it/s"
        left = _clock(seconds / share - seconds) if share else "?"
        line = (
            f"\r{self._title}: {share:4.0%}|{filled:<{_BAR}}| {self._done}/{self._total}"
            f" [{_clock(seconds)}<{left}, {rate}]"
        )
        self._stream.write(line)
        self._stream.flush()


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def _place() -> str:
    frame = sys._getframe(2)  # noqa: SLF001 - logging does the same
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
