"""Write what happens as a vLLM 0.33 engine would log it: stages, progress bars, tracebacks."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from capdoctor.capture.stacks import is_shim

_DRIVERS = tuple(
    str(Path(__file__).resolve().parents[1] / room) for room in ("scenarios", "checker")
)
# Between an operator and a torch that is watched; a device's own stack has none of it.
_PLUMBING = ("torch/_compile.py", "torch/_ops.py")


class EngineLog:
    """One engine process's log."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._prefix = f"(EngineCore pid={os.getpid()}) "

    def line(self, message: str, at: str = "core.py:123", level: str = "INFO") -> None:
        """Write one record; ``at`` is the file and line that vLLM's own record would name."""
        stamp = time.strftime("%m-%d %H:%M:%S")
        for text in message.splitlines() or [""]:
            self._out.write(f"{self._prefix}{level} {stamp} [{at}] {text}\n")
        self._out.flush()

    def bar(self, mode: str, done: int, total: int) -> None:
        """Write the state of a capture's progress bar."""
        share = done * 100 // total
        drawn = f"{'█' * (share // 10):<10}"
        text = f"Capturing CUDA graphs ({mode}): {share:3d}%|{drawn}| {done}/{total}"
        self._out.write(f"{self._prefix}{text} [00:00<00:00]\n")
        self._out.flush()

    def crash(self, error: BaseException, source: Path) -> None:
        """Write the end of an engine that could not start; ``source`` is the tree under test."""
        at = "core.py:1366"
        self.line("EngineCore failed to start.", at, "ERROR")
        self.line("".join(crash_lines(error, source)), at, "ERROR")


def crash_lines(error: BaseException, source: Path) -> Iterator[str]:
    """Give the traceback as the tree's engine would print it.

    After the tree's innermost frame come the virtual device and our stand-ins, where an engine
    has the device itself: they are left out.
    """
    told = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = told
    while link is not None:
        link.stack = traceback.StackSummary.from_list(_told(list(link.stack), source))
        link = link.__cause__ or link.__context__
    yield from told.format()


def _told(frames: list[traceback.FrameSummary], source: Path) -> list[traceback.FrameSummary]:
    inside = [n for n, frame in enumerate(frames) if frame.filename.startswith(str(source))]
    if not inside:
        return [frame for frame in frames if _is_driver(frame.filename) or _is_real(frame.filename)]
    rest = [frame for frame in frames[inside[-1] + 1 :] if _is_real(frame.filename)]
    return frames[: inside[-1] + 1] + rest


def _is_driver(filename: str) -> bool:
    """Say whether the frame is of the code that drives the capture, as an engine's would be."""
    return filename.startswith(_DRIVERS)


def root_of(error: BaseException) -> BaseException:
    """Give the error that began it: ``capture_end`` raises another one on its way out."""
    seen: set[int] = set()
    while error.__context__ is not None and id(error) not in seen:
        seen.add(id(error))
        error = error.__context__
    return error


def _is_real(filename: str) -> bool:
    return not is_shim(filename) and not filename.endswith(_PLUMBING)
