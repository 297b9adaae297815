"""The start-up of the embedded engine, stage by stage."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from capdoctor import __version__
from capdoctor.capture.device import VirtualDevice
from capdoctor.capture.eager_breaks import breaking_modules, is_break
from capdoctor.capture.engine_log import EngineLog
from capdoctor.capture.tracer.virtual import traced_if_asked
from capdoctor.engines.embedded.graphs import GraphRunner
from capdoctor.engines.embedded.model_file import ModelFile, SetupFailed, check_model, load
from capdoctor.engines.embedded.settings import Settings

_KV_BYTES = 1 << 22
_TOKEN_BYTES = 1 << 10


class EngineCore:
    """One engine: made, initialised, ready. Any error on the way is the model's own."""

    def __init__(self, settings: Settings, log: EngineLog) -> None:
        self.settings = settings
        self.log = log
        self.kv_cache: torch.Tensor | None = None

    @torch.inference_mode()
    def start(self) -> None:
        """Go through all stages.

        Raises:
            SetupFailed: the model file or the device cannot be used.
        """
        self._announce()
        with device_for(self.settings) as device, traced(device), breaking_modules():
            self._init_device()
            file, model = self._load_model()
            began = time.perf_counter()
            self._initialize(file, model)
            took = time.perf_counter() - began
        self.log.record(f"init engine (profile, create kv cache, warmup model) took {took:.2f} s")

    def _announce(self) -> None:
        chosen = self.settings
        label = "virtual device" if chosen.device == "cpu" else "real device"
        self.log.record(
            f"Initializing a V1 LLM engine (embedded engine, {label}; capdoctor {__version__}) with"
            f" config: model={chosen.model!r}, device={chosen.device}, torch={torch.__version__},"
            f" as_torch={chosen.as_torch or torch.__version__}, cudagraph_mode={chosen.mode},"
            f" cudagraph_capture_sizes={list(chosen.sizes) or 'of the model'}"
        )

    def _init_device(self) -> None:
        name = torch.cuda.get_device_name()
        self.log.record("world_size=1 rank=0 distributed_init_method=none backend=none")
        self.log.record(f"rank 0 in world size 1 is assigned as DP rank 0 on {name}")

    def _load_model(self) -> tuple[ModelFile, torch.nn.Module]:
        began, before = time.perf_counter(), torch.cuda.memory_allocated()
        self.log.record("Loading model from scratch...")
        file = load(Path(self.settings.file), self.settings.shown)
        model = file.build()
        check_model(model, self.settings.shown)
        model = model.to("cuda").eval()
        took = (torch.cuda.memory_allocated() - before) / 2**30
        seconds = time.perf_counter() - began
        self.log.record(f"Model loading took {took:.2f} GiB memory and {seconds:.6f} seconds")
        return file, model

    def _initialize(self, file: ModelFile, model: torch.nn.Module) -> None:
        settings = self.settings
        breaks = sum(is_break(module) for module in model.modules())
        sizes = settings.sizes or file.sizes
        runner = GraphRunner(model, file, settings.shown, sizes, settings.mode)
        self.determine_available_memory(runner, breaks)
        self._initialize_kv_cache()
        self.compile_or_warm_up_model(runner)

    def determine_available_memory(self, runner: GraphRunner, breaks: int) -> None:
        """Measure what the model needs: once eagerly, then with throw-away graphs."""
        self.profile_run(runner)
        if not runner.kinds:
            self.log.record("CUDA graph memory profiling is disabled: no graphs are captured")
        elif self.settings.kv_cache_bytes is None:
            if "PIECEWISE" in runner.kinds:
                self.log.record(f"Breakable CUDA graph enabled ({breaks} eager breaks)")
            runner.profile_cudagraph_memory(self.log)
        free, total = torch.cuda.mem_get_info()
        self.log.record(
            f"Available KV cache memory: {free / 2**30:.2f} GiB of {total / 2**30:.2f} GiB"
        )

    def profile_run(self, runner: GraphRunner) -> None:
        """Run the largest dummy batch eagerly."""
        began = time.perf_counter()
        runner.forward(runner.inputs_for(runner.sizes[0]))
        torch.cuda.synchronize()
        took = time.perf_counter() - began
        self.log.record(f"Initial profiling/warmup run took {took:.2f} s")

    def _initialize_kv_cache(self) -> None:
        free, _total = torch.cuda.mem_get_info()
        size = min(self.settings.kv_cache_bytes or _KV_BYTES, free // 2)
        self.kv_cache = torch.zeros(size, dtype=torch.uint8, device="cuda")
        tokens = size // _TOKEN_BYTES
        self.log.record(
            f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for 64 tokens per request:"
            f" {tokens / 64:.2f}x"
        )

    def compile_or_warm_up_model(self, runner: GraphRunner) -> None:
        """Warm every size up, capture the graphs that serve, and replay each once."""
        began = time.perf_counter()
        self.log.record("JIT kernel warmup starting.")
        for size in runner.sizes:
            runner.forward(runner.inputs_for(size))
        torch.cuda.synchronize()
        self.log.record(f"JIT kernel warmup finished in {time.perf_counter() - began:.2f}s.")
        if runner.kinds:
            runner.capture_model(self.log)
            runner.replay_all()


def traced(device: VirtualDevice | None) -> contextlib.AbstractContextManager[None]:
    """Trace the captures if the run is to be; a real device is None."""
    return traced_if_asked(None if device is None else device.session)


@contextlib.contextmanager
def device_for(settings: Settings) -> Iterator[Any]:
    """The device that a run is given, virtual or real.

    Raises:
        SetupFailed: a real one is asked for and there is none.
    """
    if settings.device == "cpu":
        with VirtualDevice(as_torch=settings.as_torch, memory_budget=settings.memory) as device:
            yield device
        return
    if not torch.cuda.is_available():
        raise SetupFailed("no CUDA device can be used by this torch; leave --device cuda out.")
    if settings.memory is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(settings.memory / total, 1.0))
    yield None
