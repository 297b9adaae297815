"""Drive a forward pass the way an engine does: eager first, then captured, then replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

from capdoctor.capture.segments import PiecewiseCapture


class GraphMode(IntEnum):
    """The run-time modes of vLLM's ``CUDAGraphMode``, with its numbers."""

    NONE = 0
    PIECEWISE = 1
    FULL = 2


@dataclass
class ForwardContext:
    """What a forward pass of the engine knows about itself."""

    cudagraph_runtime_mode: GraphMode = GraphMode.NONE
    attn_metadata: Any = None
    batch_descriptor: Any = None
    additional_kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Forward:
    """The current forward pass, None between passes."""

    context: ForwardContext | None = None

    @contextmanager
    def running(self, mode: GraphMode) -> Iterator[None]:
        """Be in a forward pass of this mode."""
        self.context = ForwardContext(mode)
        try:
            yield
        finally:
            self.context = None

    def is_piecewise(self) -> bool:
        """Say whether a piecewise forward pass is running."""
        return self.context is not None and (
            self.context.cudagraph_runtime_mode is GraphMode.PIECEWISE
        )


class Model(Protocol):
    """What a scenario exercises: a forward pass with eager breaks, and a check of its result."""

    def forward(self) -> None:
        """Run once; calls ``run_eagerly`` where the engine breaks the capture."""

    def change_inputs(self) -> None:
        """Give the static input buffers new values."""

    def check(self) -> None:
        """Raise when the outputs do not belong to the inputs."""


def run_eagerly(function: Callable[[], Any], forward: Forward) -> Any:
    """Do what an engine's eager-break decorator does: leave the capture only when piecewise."""
    capture = PiecewiseCapture.running()
    if capture is None or not forward.is_piecewise():
        return function()
    return capture.eager(function)


def profile_run(model: Model, forward: Forward) -> None:
    """Run eagerly: what every engine does before it captures."""
    with forward.running(GraphMode.NONE):
        model.forward()
    model.check()


def profile_cudagraph_memory(model: Model, forward: Forward, mode: GraphMode) -> None:
    """Capture in a pool that is thrown away, as vLLM does to measure."""
    capture_model(model, forward, mode)


def capture_model(model: Model, forward: Forward, mode: GraphMode) -> None:
    """Capture in this mode, then replay with other inputs and check the outputs."""
    import torch

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        if mode is GraphMode.PIECEWISE:
            replay = _capture_piecewise(model, forward)
        else:
            replay = _capture_whole(model, forward)
        model.change_inputs()
        with forward.running(mode):
            replay()
    torch.cuda.synchronize()
    model.check()


def _capture_piecewise(model: Model, forward: Forward) -> Callable[[], None]:
    with forward.running(GraphMode.PIECEWISE), PiecewiseCapture() as capture:
        model.forward()
    return capture.replay


def _capture_whole(model: Model, forward: Forward) -> Callable[[], None]:
    import torch

    graph = torch.cuda.CUDAGraph()
    with forward.running(GraphMode.FULL):
        graph.capture_begin()
        try:
            model.forward()
        finally:
            graph.capture_end()
    replay: Callable[[], None] = graph.replay
    return replay
