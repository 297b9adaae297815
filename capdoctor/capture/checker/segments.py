"""Piecewise capture: graph segments with eager breaks between them, as an engine makes them.

An eager break ends the running segment, calls its function on the capture stream, and begins a
new segment (vLLM's breakable graphs, read in ``vllm/compilation/breakable_cudagraph.py`` 0.33).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_RUNNING = threading.local()


class PiecewiseCapture:
    """Capture what runs inside the ``with`` block, piece by piece; then ``replay``."""

    def __init__(self) -> None:
        self.pieces: list[Callable[[], Any]] = []
        self._graph: Any = None
        self._notes: list[Callable[[], Any]] = []

    @staticmethod
    def running() -> PiecewiseCapture | None:
        """Give the capture that this thread is in, or None."""
        return getattr(_RUNNING, "capture", None)

    def __enter__(self) -> Self:
        """Begin the first segment."""
        _RUNNING.capture = self
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the last segment."""
        _RUNNING.capture = None
        if self._graph is not None:
            self._end()

    def eager(self, function: Callable[[], Any]) -> Any:
        """Run the function between two segments; it runs again at every replay."""
        self._end()
        result = function()
        self.pieces.append(function)
        self._begin()
        return result

    def note(self, function: Callable[[], Any]) -> None:
        """Run the function now, and after every replay of the segment that is being captured."""
        function()
        self._notes.append(function)

    def replay(self) -> None:
        """Run all pieces in order."""
        for piece in self.pieces:
            piece()

    def _begin(self) -> None:
        import torch

        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        self._graph = graph

    def _end(self) -> None:
        graph, self._graph = self._graph, None
        graph.capture_end()
        self.pieces.extend((graph.replay, *self._notes))
        self._notes = []
