"""Exceptions of all threads, where Python tells of them (3.12 on: ``sys.monitoring``).

A call of another thread that breaks a capture raises in that thread: this names it exactly. It
costs nothing until something is raised.
"""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Any

from .calls import called_by_program, caller, source_of
from .guard import Guard
from .watch import Watch

_TOOLS = (4, 3)  # 0 to 2 and 5 are set aside for debuggers, coverage, profilers, optimizers
_NAME = "capdoctor tracer"


class Raises:
    """The process-wide hook on raised exceptions."""

    def __init__(self, watch: Watch, guard: Guard, hidden: Any) -> None:
        self.watch = watch
        self.guard = guard
        self.hidden = hidden
        self.tool: int | None = None

    def start(self) -> None:
        """Begin, if this Python has it and a place is free."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None or self.tool is not None:
            return
        free = [tool for tool in _TOOLS if monitoring.get_tool(tool) is None]
        if not free:
            return
        self.tool = free[0]
        monitoring.use_tool_id(self.tool, _NAME)
        monitoring.register_callback(self.tool, monitoring.events.RAISE, self.raised)
        monitoring.set_events(self.tool, monitoring.events.RAISE)

    def stop(self) -> None:
        """Give the place back."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None and self.tool is not None:
            monitoring.set_events(self.tool, 0)
            monitoring.register_callback(self.tool, monitoring.events.RAISE, None)
            monitoring.free_tool_id(self.tool)
            self.tool = None

    def raised(self, code: CodeType, offset: int, error: BaseException) -> None:
        """Something was raised, or goes on to the frame that called."""
        del offset, error
        if self.watch.running and not self.hidden.is_own(code):
            self.guard.run(self._raised, caller(1))

    def _raised(self, frame: FrameType) -> None:
        capture = self.watch.broken()
        if capture is not None and capture.thread != threading.get_ident():
            line = source_of((frame.f_code, frame.f_lineno))
            self.watch.after(called_by_program(frame, self.hidden) or line, frame)
