"""Capture in segments: sub-modules marked ``eager_break`` run eagerly between captured parts."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Self

import torch


class BreakableCapture:
    """Captures what runs inside its context, segment by segment, on the current stream.

    ``replay`` runs the segments and the eager parts in their order. What an eager part returns is
    copied into the tensors that it returned first, so that later segments find it.
    """

    current: ClassVar[BreakableCapture | None] = None

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.parts: list[Callable[[], Any]] = []
        self.breaks = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __enter__(self) -> Self:
        """Begin the first segment."""
        type(self).current = self
        self._begin_segment()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End the last segment, also while an error passes, as torch's own context does."""
        try:
            self._end_segment()
        finally:
            type(self).current = None

    def _begin_segment(self) -> None:
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=self.pool)
        self._graph = graph

    def _end_segment(self) -> None:
        if self._graph is None:
            return
        graph, self._graph = self._graph, None
        graph.capture_end()
        self.parts.append(graph.replay)

    def add_eager(self, call: Callable[[], Any]) -> Any:
        """End the segment, run ``call`` outside any capture, begin the next segment."""
        self._end_segment()
        result = call()
        self.parts.append(lambda: _copy_into(result, call()))
        self.breaks += 1
        self._begin_segment()
        return result

    def replay(self) -> None:
        """Run everything again."""
        for part in self.parts:
            part()


def mark_breaks(model: torch.nn.Module) -> int:
    """Make the model's ``eager_break`` modules break segments; give how many there are."""
    marked = [m for m in model.modules() if getattr(m, "eager_break", False)]
    for module in marked:
        module.forward = _breaking(module.forward)
    return len(marked)


def _breaking(forward: Callable[..., Any]) -> Callable[..., Any]:
    def eager_break(*args: Any, **kwargs: Any) -> Any:
        capture = BreakableCapture.current
        if capture is None:
            return forward(*args, **kwargs)
        return capture.add_eager(lambda: forward(*args, **kwargs))

    return eager_break


def _copy_into(old: Any, new: Any) -> None:
    if isinstance(old, torch.Tensor):
        if old is not new:
            old.copy_(new)
    elif isinstance(old, list | tuple):
        for one, other in zip(old, new, strict=True):
            _copy_into(one, other)
