"""Piecewise capture: graph segments with eager breaks between them, as an engine makes them.

An eager break ends the running segment, calls its function on the capture stream, and begins a
new segment (vLLM's breakable graphs, read in ``vllm/compilation/breakable_cudagraph.py`` 0.33).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

_RUNNING = threading.local()


class PiecewiseCapture:
    """Capture what runs inside the ``with`` block, piece by piece; then ``replay``.

    ``pool`` is where the graphs take their memory from, a pool of its own for each if None.
    """

    def __init__(self, pool: Any = None) -> None:
        self.pool = pool
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
        self._begin_segment()
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
            self._end_segment()

    def eager(self, function: Callable[[], Any]) -> Any:
        """Run the function between two segments; it runs again at every replay.

        What it gives then is copied into the tensors that it gave first, where later segments
        look for it.
        """
        self._end_segment()
        result = function()
        self.pieces.append(lambda: _copy_into(result, function()))
        self._begin_segment()
        return result

    def note(self, function: Callable[[], Any]) -> None:
        """Run the function now, and after every replay of the segment that is being captured."""
        function()
        self._notes.append(function)

    def replay(self) -> None:
        """Run all pieces in order."""
        for piece in self.pieces:
            piece()

    def _begin_segment(self) -> None:
        import torch

        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=self.pool)
        self._graph = graph

    def _end_segment(self) -> None:
        graph, self._graph = self._graph, None
        graph.capture_end()
        self.pieces.extend((graph.replay, *self._notes))
        self._notes = []


def _copy_into(old: Any, new: Any) -> None:
    import torch

    if isinstance(old, torch.Tensor):
        if old is not new:
            old.copy_(new)
    elif isinstance(old, Mapping):
        for key, value in old.items():
            _copy_into(value, new[key])
    elif isinstance(old, list | tuple):
        for one, other in zip(old, new, strict=True):
            _copy_into(one, other)
