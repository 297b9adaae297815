"""A call as it is remembered and written down: what, where, on which stream, by which thread."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import sysconfig
import threading
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from .names import callable_name, frame_name, is_carrier

OWN = str(Path(__file__).resolve().parent) + os.sep
_STDLIB = sysconfig.get_path("stdlib") + os.sep
_SITE = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_DISPATCH_FILES = ("_ops.py", "overrides.py", "_library", str(Path("utils", "_python_dispatch.py")))
_DEPTH = 200
_WRITTEN = 60
_POOL = str(Path("futures", "thread.py"))
_THREAD_STARTS = ("_bootstrap", "_bootstrap_inner")

if TYPE_CHECKING:
    Place = tuple[CodeType, int | None]


class Call(NamedTuple):
    """One call. ``places`` are innermost first; turning them into text waits until it is needed."""

    operation: str
    called_as: str | None
    places: tuple[Place, ...]
    thread: int
    stream: int | None = None
    number: int | None = None
    capture: int | None = None
    thread_name: str | None = None

    def deepened(self, error: BaseException | None, hidden: Hidden) -> Call:
        """The same call with the frames inside it through which its exception came."""
        inner = () if error is None else walk_traceback(error.__traceback__, hidden)
        return self._replace(places=inner + self.places) if inner else self


class Hidden:
    """Which files are no part of the program: the tracer's, torch's, and a virtual device's.

    Args:
        torch_folder: where torch lies.
        shims: prefixes of files that exist because a device is virtual.
        natives: those of them that stand in for torch's own functions, and are named as such.
    """

    def __init__(
        self, torch_folder: str, shims: tuple[str, ...] = (), natives: tuple[str, ...] = ()
    ) -> None:
        # A context manager's own frames stand between a program and torch as torch's do.
        self.prefixes = (OWN, torch_folder, contextlib.__file__, *shims)
        self.own = (OWN, *shims)
        self.natives = natives
        self.silent: dict[str, bool] = {}
        self._silent = (OWN, *shims, *(torch_folder + name for name in _DISPATCH_FILES))
        self._hidden: dict[str, bool] = {}
        self._own: dict[str, bool] = {}

    def is_hidden(self, code: CodeType) -> bool:
        """Say whether frames of this code are left out of stacks."""
        name = code.co_filename
        answer = self._hidden.get(name)
        if answer is None:
            answer = self._hidden[name] = name.startswith(self.prefixes)
        return answer

    def is_silent(self, code: CodeType) -> bool:
        """Say whether nothing that happens in frames of this code is of interest."""
        name = code.co_filename
        answer = self.silent.get(name)
        if answer is None:
            silent = name.startswith(self._silent) and not name.startswith(self.natives)
            answer = self.silent[name] = silent
        return answer

    def is_own(self, code: CodeType) -> bool:
        """Say whether the code is ours or a shim's: what it calls is of no interest."""
        name = code.co_filename
        answer = self._own.get(name)
        if answer is None:
            answer = self._own[name] = name.startswith(self.own)
        return answer

    def names_calls(self, frame: FrameType) -> bool:
        """Say whether the frame runs a function that a program calls by that name."""
        code = frame.f_code
        if is_carrier(frame) or code.co_filename == contextlib.__file__:
            return False
        return not self.is_own(code) or code.co_filename.startswith(self.natives)

    def is_boundary(self, frame: FrameType) -> bool:
        """Say whether the frame runs a function of torch that the program itself called."""
        caller = frame.f_back
        if caller is None or not self.is_hidden(frame.f_code) or self.is_hidden(caller.f_code):
            return False
        return self.names_calls(frame)


def walk(frame: FrameType | None, hidden: Hidden) -> tuple[Place, ...]:
    """The visible frames from ``frame`` outwards."""
    places = []
    depth = 0
    while frame is not None and depth < _DEPTH:
        if not hidden.is_hidden(frame.f_code):
            places.append((frame.f_code, frame.f_lineno))
        frame, depth = frame.f_back, depth + 1
    return tuple(places)


def walk_traceback(trace: TracebackType | None, hidden: Hidden) -> tuple[Place, ...]:
    """The visible frames of a traceback, innermost first."""
    places = []
    while trace is not None:
        if not hidden.is_hidden(trace.tb_frame.f_code):
            places.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    return tuple(reversed(places))


def called_by_program(frame: FrameType | None, hidden: Hidden) -> str | None:
    """The torch function that the program called, if ``frame`` lies inside one."""
    outermost: FrameType | None = None
    while frame is not None and hidden.is_hidden(frame.f_code):
        if hidden.names_calls(frame):
            outermost = frame
        frame = frame.f_back
    return None if outermost is None else frame_name(outermost)


def make_call(function: str | Any, frame: FrameType | None, hidden: Hidden, **more: Any) -> Call:
    """Remember a call of ``function`` that is made in ``frame``."""
    if hasattr(function, "_schema"):
        frame = _beyond_modes(function, frame, hidden)
    by_program = called_by_program(frame, hidden)
    if isinstance(function, str):
        name = function
    elif hasattr(function, "_schema"):  # an operator has a name of its own
        name = callable_name(function)
    else:
        name = by_program or callable_name(function)
    called_as = by_program if by_program != name else None
    called_as = more.pop("called_as", None) or called_as
    thread = threading.get_ident()
    return Call(
        name, called_as, walk(frame, hidden), thread, thread_name=thread_name(thread), **more
    )


def _beyond_modes(operator: Any, frame: FrameType | None, hidden: Hidden) -> FrameType | None:
    """The frame that an operator comes from, beyond modes of the program's that hand it on."""
    start = frame
    while frame is not None:
        if not hidden.is_hidden(frame.f_code):
            is_mode = frame.f_code.co_name == "__torch_dispatch__"
            if not is_mode or all(value is not operator for value in frame.f_locals.values()):
                break
            start = frame.f_back
        frame = frame.f_back
    return start


def of_program(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """The places without those of Python's own library at the inner end."""
    for index, (code, _line) in enumerate(places):
        if not _is_stdlib(code):
            return places[index:]
    return places


def as_json(call: Call) -> dict[str, Any]:
    """The call as the journal holds it; the stack is outermost first."""
    places = of_program(call.places)
    stack = [[code.co_filename, line or 0, code.co_name] for code, line in places[:_WRITTEN]]
    return {
        "operation": call.operation,
        "called_as": call.called_as,
        "stack": stack[::-1],
        "source": source_of(places[0]) if places else "",
        "stream": call.stream,
        "number": call.number,
        "capture": call.capture,
        "thread": call.thread_name,
        "thread_id": call.thread,
    }


def source_of(place: Place) -> str:
    """The text of a line."""
    return linecache.getline(place[0].co_filename, place[1] or 0).strip()


def starts_thread(places: tuple[Place, ...]) -> int | None:
    """How many of the places, innermost first, lie in a thread that the outer ones waited for."""
    for index, (code, _line) in enumerate(places):
        name = code.co_filename
        if code.co_name in _THREAD_STARTS and name.endswith("threading.py"):
            return index
        if code.co_name == "run" and name.endswith(_POOL):
            return index
    return None


def thread_name(ident: int) -> str | None:
    """The name of a running thread, None for one that Python did not start."""
    # Not current_thread(): it would invent one.
    thread = threading._active.get(ident)  # type: ignore[attr-defined]  # noqa: SLF001
    return None if thread is None else thread.name


def thread_names() -> dict[int, str]:
    """The names of the threads that Python started and that run now."""
    # Not enumerate(): it takes a lock, which the code that is looked at may hold.
    running = dict(threading._active)  # type: ignore[attr-defined]  # noqa: SLF001
    return {ident: thread.name for ident, thread in running.items()}


def _is_stdlib(code: CodeType) -> bool:
    name = code.co_filename
    return name.startswith(_STDLIB) and not any(site in name for site in _SITE)


def caller(depth: int) -> FrameType:
    """The frame ``depth`` levels above the function that asks."""
    return sys._getframe(depth + 1)  # noqa: SLF001 - the documented way would read sources
