"""One running capture, and where an event was last recorded."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

from .calls import Call
from .joins import Clock, Joins
from .suspects import Suspects


class Capture:
    """A capture between its begin and its end.

    ``ask()`` brings ``answer.value`` up to date: how the driver says that the capture stands.
    ``last`` is what was done in it last. ``outer`` is an exception that was being handled when it
    began, as where a failed capture is tried again: it has nothing to do with this one.
    """

    __slots__ = (
        "answer", "ask", "broken", "ending", "graph", "ident", "joins", "last", "number", "outer",
        "stream", "suspects", "thread",
    )  # fmt: skip

    def __init__(self, number: int, stream: int, graph: Any, source: Any) -> None:
        self.number = number
        self.ident: int | None = source.capture_id(stream)
        self.ask, self.answer = source.asker(stream)
        self.stream = stream
        self.graph = id(graph)
        self.thread = threading.get_ident()
        self.broken = self.ending = False
        self.joins = Joins(stream)
        self.last: tuple[Any, Any] | None = None
        self.suspects = Suspects()
        self.outer: BaseException | None = sys.exc_info()[1]


class Recorded(NamedTuple):
    """An event's last record, where that was inside a capture."""

    capture: Capture
    clock: Clock
    call: Call
