"""The profile hook of a capturing thread: sees functions of C that are no operators.

``Event.record``, a Triton launch, ``cudart()`` calls: each is looked at before and after. Python
reports no slots (``x + 1``, ``bool(x)``); those that reach the dispatcher are the operators' part.

The hook stays on between the segments of a piecewise capture, and goes when the function that set
the capture up has returned: on Python 3.12 every change of it makes all code be instrumented anew.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from .arguments import events_on_line
from .calls import Hidden
from .events import Events
from .guard import Guard
from .watch import Watch
from .watched import is_watched

_UP = 2
_RETURNS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RETURN_GENERATOR", "YIELD_VALUE"})


class ProfileHook:
    """One thread's hook. ``pending`` is the function of C that the program is in.

    ``idle`` is called when the hook goes.
    """

    def __init__(
        self, watch: Watch, guard: Guard, hidden: Hidden, idle: Callable[[], None]
    ) -> None:
        self.watch = watch
        self.guard = guard
        self.hidden = hidden
        self.idle = idle
        self.events = Events(watch)
        # Methods of these are of C alone; an event's stream is taken as current.
        self.generic = torch._C.Event  # noqa: SLF001
        self.generic_stream = torch._C.Stream  # noqa: SLF001
        self.pending: Any = None
        self.anchor: FrameType | None = None
        self.previous: Any = None

    def start(self, frame: FrameType) -> None:
        """Begin in the calling thread, unless it is on or a profiler of C is; ``frame`` began."""
        current = sys.getprofile()
        if current is self or (current is not None and not callable(current)):
            return
        # Else it is not on yet, or the program has set another one or none since.
        self.previous = current
        self.anchor = _anchor(frame, self.hidden)
        sys.setprofile(self)

    def stop(self) -> None:
        """Put the profiler back that was there before."""
        self.anchor = self.pending = None
        if sys.getprofile() is self:
            sys.setprofile(self.previous)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Look at one event; the profiler that was there before sees it too."""
        if self.previous is not None:
            self.previous(frame, event, arg)
        # One look-up for the frames that torch and the tracer itself make between two looks.
        silent = self.hidden.silent.get(frame.f_code.co_filename)
        if silent:
            return
        if self.guard.aside:
            self.stop()
            return
        try:
            if silent is None and self.hidden.is_silent(frame.f_code):
                return
            self._look(frame, event, arg)
        except Exception:  # noqa: BLE001 - the documented boundary
            self.guard.fault()

    def _look(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "return":
            self._returned(frame, arg)
        elif not self.watch.running:
            if event == "c_exception" and self.watch.events:
                self._failed_outside(frame, arg)
        elif event == "call":
            if self.hidden.is_boundary(frame) and self.watch.broken() is not None:
                self.watch.before(frame, frame)
        elif is_watched(arg) and not self.hidden.is_own(frame.f_code):
            self._function_of_c(frame, event, arg)

    def _failed_outside(self, frame: FrameType, function: Any) -> None:
        """A method of a generic event or stream raised where nothing captures."""
        owner, caller = getattr(function, "__self__", None), frame.f_back
        if caller is not None and self.hidden.is_own(caller.f_code):
            return  # inside a method that is wrapped, which tells of it itself
        if type(owner) is self.generic:
            self.events.failed(owner, function.__name__, frame, None)
        elif type(owner) is self.generic_stream and function.__name__ == "wait_event":
            events = events_on_line(frame, (torch.Event, torch.cuda.Event))
            self.events.wait_event_failed(events, frame)

    def _function_of_c(self, frame: FrameType, event: str, function: Any) -> None:
        watch = self.watch
        if not self.hidden.is_hidden(frame.f_code):
            self.pending = function if event == "c_call" else None
        if event == "c_call":
            if watch.broken() is not None:
                watch.before(function, frame)
        elif watch.after(function, frame):
            return
        elif event == "c_exception":
            watch.suspect(function, frame)
        else:
            if type(getattr(function, "__self__", None)) is self.generic:
                self.events.done(function.__self__, function.__name__, None, frame)
            watch.done(function, frame)

    def _returned(self, frame: FrameType, result: Any) -> None:
        watch = self.watch
        if not watch.running:
            if frame is self.anchor:
                self.stop()
                self.idle()
        elif self.hidden.is_boundary(frame):
            if not watch.after(frame, frame) and result is None and _is_unwinding(frame):
                watch.suspect(frame, frame)
        elif result is None and not self.hidden.is_hidden(frame.f_code) and watch.broken():
            watch.before("return", frame)


def _is_unwinding(frame: FrameType) -> bool:
    """Say whether an exception leaves the frame, which Python reports as a return of None."""
    code = frame.f_code.co_code
    return dis.opname[code[frame.f_lasti]] not in _RETURNS


def _anchor(frame: FrameType | None, hidden: Hidden) -> FrameType | None:
    """The function that sets the capture up: beyond torch's and the context manager's frames."""
    found, steps = frame, 0
    while frame is not None and steps < _UP:
        code = frame.f_code
        if not hidden.is_hidden(code) and code.co_name != "__enter__":
            found, steps = frame, steps + 1
        frame = frame.f_back
    return found
