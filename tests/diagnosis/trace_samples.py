"""Offences as the tracer tells them, and logs of the crashes that they cause."""

from __future__ import annotations

from capdoctor.model import CaptureTrace, ErrorInfo, Frame, Offence, OffenceKind, TracedCall

REFUSED = "CUDA error: operation not permitted when stream is capturing"
LOST = "CUDA error: operation failed due to a previous error during capture"
UNJOINED = "CUDA error: capturing stream has unjoined work"
ERROR_900 = ErrorInfo("torch.AcceleratorError", REFUSED, 900)
ERROR_901 = ErrorInfo("torch.AcceleratorError", LOST, 901)
ERROR_904 = ErrorInfo("torch.AcceleratorError", UNJOINED, 904)

STACK = (
    Frame("vllm/v1/worker/gpu_model_runner.py", 5012, "profile_cudagraph_memory"),
    Frame("vllm/model_executor/models/nova.py", 77, "forward"),
    Frame("vllm/model_executor/layers/router.py", 31, "choose_experts"),
)
ITEM = TracedCall(
    "aten::_local_scalar_dense",
    STACK,
    source="limit = scores.max().item()",
    called_as="torch.Tensor.item",
    stream=0x5581,
    capture=4,
    number=2,
    thread="MainThread",
    thread_id=140_000,
)

_HEAD = (
    "(EngineCore pid=77) INFO 11-29 16:00:01 [core.py:93] Initializing a V1 LLM engine (v0.30.0)"
    " with config: model='x'\n"
    "(EngineCore pid=77) INFO 11-29 16:00:02 [gpu_model_runner.py:68] Starting to load model x...\n"
    "(EngineCore pid=77) INFO 11-29 16:00:03 [gpu_model_runner.py:90] Model loading took 0.01 GiB"
    " memory and 0.1 seconds\n"
    "(EngineCore pid=77) INFO 11-29 16:00:04 [gpu_model_runner.py:95] Profiling CUDA graph memory:"
    " PIECEWISE=2 (largest=8), FULL=2\n"
)
_RECORD = "(EngineCore pid=77) ERROR 11-29 16:00:05 [core.py:900] "


def log_of(message: str, function: str = "capture_end", path: str = "torch/cuda/graphs.py") -> str:
    """Give the log of an engine whose process fails with one traceback."""
    lines = [
        "EngineCore failed to start.",
        "Traceback (most recent call last):",
        '  File "/p/site-packages/vllm/v1/engine/core.py", line 890, in run_engine_core',
        "    engine_core = EngineCoreProc(*args, **kwargs)",
        f'  File "/p/site-packages/{STACK[0].file}", line 5012, in {STACK[0].function}',
        "    with graph_capture(device=self.device), torch.cuda.graph(graph):",
        f'  File "/p/site-packages/{path}", line 110, in {function}',
        "    super().capture_end()",
        f"torch.AcceleratorError: {message}",
    ]
    return _HEAD + "".join(f"{_RECORD}{line}\n" for line in lines)


def trace_of(*offences: Offence) -> CaptureTrace:
    return CaptureTrace(offences, processes=2, captures=3)


def invalidated(call: TracedCall = ITEM, pid: int | None = 77) -> Offence:
    return Offence(OffenceKind.INVALIDATED, call, None, ERROR_900, ERROR_901, (), pid, "EngineCore")
