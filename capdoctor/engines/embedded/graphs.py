"""Captures a model's graphs as vLLM's second model runner does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from capdoctor.capture.engine_log import EngineLog
from capdoctor.capture.segments import PiecewiseCapture
from capdoctor.engines.embedded.model_file import ModelFile, check_inputs

_PROFILED_FULL = 2  # the first, throw-away round captures only the largest full graphs
_KINDS = {
    "NONE": (),
    "PIECEWISE": ("PIECEWISE",),
    "FULL": ("FULL",),
    "FULL_DECODE_ONLY": ("FULL",),
    "FULL_AND_PIECEWISE": ("PIECEWISE", "FULL"),
}


@dataclass(frozen=True, slots=True)
class Captured:
    """One graph that can be replayed, with the buffers it reads and the result it writes."""

    kind: str
    size: int
    graph: Any
    inputs: tuple[Any, ...]
    output: Any


class GraphRunner:
    """Captures and keeps the graphs of one model. Sizes are captured largest first."""

    def __init__(
        self, model: torch.nn.Module, file: ModelFile, shown: str, sizes: Sequence[int], mode: str
    ) -> None:
        self.model, self.file, self.shown = model, file, shown
        self.sizes = tuple(sorted(sizes, reverse=True))
        self.kinds = _KINDS[mode]
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.captured: list[Captured] = []

    def forward(self, inputs: tuple[Any, ...]) -> Any:
        """Run the model once, eagerly or into whatever captures."""
        return self.model(*inputs)

    def inputs_for(self, size: int) -> tuple[Any, ...]:
        """The dummy batch of one size."""
        return check_inputs(self.file.inputs(size), self.shown)

    def profile_cudagraph_memory(self, log: EngineLog) -> int:
        """Capture into a pool that is thrown away; give the bytes that it took."""
        try:
            return self.capture_model(log, profile_only=True)
        finally:
            self.captured.clear()
            torch.cuda.empty_cache()

    def capture_model(self, log: EngineLog, *, profile_only: bool = False) -> int:
        """Capture every graph; give the bytes of device memory that they took."""
        began, before = time.perf_counter(), torch.cuda.memory_allocated()
        pool = torch.cuda.graph_pool_handle()
        for kind in self.kinds:
            few = profile_only and kind == "FULL"
            self._capture_kind(kind, self.sizes[: _PROFILED_FULL if few else None], pool, log)
        took = torch.cuda.memory_allocated() - before
        seconds = time.perf_counter() - began
        log.record(f"Graph capturing finished in {seconds:.0f} secs, took {took / 2**30:.2f} GiB")
        return took

    def _capture_kind(self, kind: str, sizes: Sequence[int], pool: Any, log: EngineLog) -> None:
        bar = log.bar(f"Capturing CUDA graphs ({kind})", len(sizes))
        try:
            for size in sizes:
                self.captured.append(self._capture_one(kind, size, pool))
                bar.step()
        finally:
            bar.close()

    def _capture_one(self, kind: str, size: int, pool: Any) -> Captured:
        inputs = self.inputs_for(size)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.forward(inputs)
        torch.cuda.synchronize()
        if kind == "FULL":
            return self._capture_full(size, inputs, pool)
        return self._capture_piecewise(size, inputs, pool)

    def _capture_full(self, size: int, inputs: tuple[Any, ...], pool: Any) -> Captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=self.stream):
            output = self.forward(inputs)
        return Captured("FULL", size, graph, inputs, output)

    def _capture_piecewise(self, size: int, inputs: tuple[Any, ...], pool: Any) -> Captured:
        capture = PiecewiseCapture(pool)
        with torch.cuda.stream(self.stream), capture:
            output = self.forward(inputs)
        return Captured("PIECEWISE", size, capture, inputs, output)

    def replay_all(self) -> None:
        """Serve one dummy batch with every graph."""
        for entry in self.captured:
            entry.graph.replay()
        torch.cuda.synchronize()
