"""``torch.accelerator.Graph`` (torch 2.13 and newer) on the virtual device."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from capdoctor.capture import streams
from capdoctor.capture.graphs import CUDAGraph

_DEFAULT = {"default": "global"}  # what CUDA makes of the mode that is left to it


class Graph(CUDAGraph):
    """A graph that is told its pool and error mode when it is made, and is its own context."""

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ) -> None:
        super().__init__(keep_graph)
        self.graph_pool = pool
        self.capture_error_mode = capture_error_mode

    def capture_begin(self, *_: Any, **__: Any) -> None:
        """Start to capture the current stream."""
        mode = self.capture_error_mode
        super().capture_begin(self.graph_pool, _DEFAULT.get(mode, mode))

    def __enter__(self) -> None:
        """Begin, after waiting for the device."""
        streams.synchronize()
        self.capture_begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End."""
        self.capture_end()
