"""Threads that start while something captures: their calls are looked at too.

On Python 3.12 and later ``raises`` sees what older threads raise as well; before, only the driver's
log tells of those.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

from .calls import thread_name
from .guard import Guard
from .watch import Watch
from .watched import is_watched


class NewThreads:
    """The profile hook that ``threading`` gives each new thread."""

    def __init__(self, watch: Watch, guard: Guard) -> None:
        self.watch = watch
        self.guard = guard
        self.previous: Any = None

    def start(self) -> None:
        """Begin, unless somebody profiles new threads already."""
        if getattr(threading, "_profile_hook", None) is None:
            threading.setprofile(self)

    def stop(self) -> None:
        """End for threads to come; those that run end it themselves."""
        if getattr(threading, "_profile_hook", None) is self:
            threading.setprofile(None)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Look at one event of a thread that runs no capture."""
        if self.guard.aside or not self.watch.running:
            if sys.getprofile() is self:  # else one that goes on hands its events on
                sys.setprofile(None)
            return
        try:
            self._look(frame, event, arg)
        except Exception:  # noqa: BLE001 - the documented boundary
            self.guard.fault()

    def _look(self, frame: FrameType, event: str, arg: Any) -> None:
        watch, hidden = self.watch, self.watch.hidden
        thread = threading.get_ident()
        if thread not in watch.threads:
            watch.threads[thread] = thread_name(thread) or ""
        if watch.is_capturing_here() or hidden.is_silent(frame.f_code):
            return
        if event in ("c_return", "c_exception"):
            if is_watched(arg) and not hidden.is_own(frame.f_code):
                watch.after(arg, frame)
        elif event == "return" and hidden.is_boundary(frame):
            watch.after(frame, frame)
