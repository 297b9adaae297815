"""Confidence is counted from evidence: more kinds that agree, more confidence."""

from __future__ import annotations

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.logs import read_text
from capdoctor.model import Diagnosis

START = "(EngineCore pid=9) INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.29.0)"
START += " with config: x\n"
BAR = (
    "(EngineCore pid=9) Capturing CUDA graphs (PIECEWISE):   0%|          | 0/4 [00:00<?, ?it/s]\n"
)
KV = "(EngineCore pid=9) INFO 08-12 10:00:02 [gpu_worker.py:625] Available KV cache memory: 9 GiB\n"
TRACE = """Traceback (most recent call last):
  File "/x/site-packages/vllm/v1/worker/gpu/model_runner.py", line 931, in capture_model
    self.cudagraph_manager.capture(
  File "/x/site-packages/vllm/model_executor/models/nova.py", line 7, in forward
    {code}
"""
ERROR = "torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing\n"


def answer_to(text: str) -> Diagnosis:
    return diagnose_parsed(read_text(text), store.load(), None)


def test_line_alone_is_possible() -> None:
    assert answer_to(ERROR).confidence == "possible"


def test_trace_that_shows_the_operation_confirms() -> None:
    sure = answer_to(START + KV + BAR + TRACE.format(code="n = lengths.max().item()") + ERROR)
    assert (sure.crash_class, sure.confidence) == ("capture_host_sync", "confirmed")


def test_trace_that_does_not_show_it_stays_possible() -> None:
    unsure = answer_to(START + KV + BAR + TRACE.format(code="y = self.layer(x)") + ERROR)
    assert (unsure.crash_class, unsure.confidence) == ("capture_host_sync", "possible")


def test_trace_without_its_head_is_at_most_likely() -> None:
    trace = TRACE.format(code="n = lengths.max().item()").split("\n", 1)[1]
    cut = answer_to("y'\n" + trace + ERROR)
    assert cut.confidence in {"likely", "possible"}


def test_unknown_error_is_unknown_and_kept_with_its_frame() -> None:
    text = START + TRACE.format(code="raise LookupError(name)") + "LookupError: nova\n"
    diagnosis = answer_to(text.replace("capture_model", "load_model"))
    assert (diagnosis.crash_class, diagnosis.confidence) == ("unknown", "unknown")
    assert diagnosis.verdict == "startup_crash"
    assert diagnosis.root_frame is not None
    assert diagnosis.root_frame.function == "forward"
    assert diagnosis.error is not None
    assert diagnosis.error.message == "nova"


def test_lone_sigkill_is_possible() -> None:
    diagnosis = answer_to(
        START + "(EngineCore pid=9) ERROR 08-12 10:00:02 [multiproc_executor.py:314] Worker proc"
        " VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.\n"
    )
    assert (diagnosis.crash_class, diagnosis.confidence) == ("native_crash", "possible")


def test_sigkill_with_a_sign_of_the_oom_killer_is_host_memory() -> None:
    diagnosis = answer_to(
        START + "[ 91.2] Memory cgroup out of memory: Killed process 18822 (VLLM::Worker_TP)\n"
        "(EngineCore pid=9) ERROR 08-12 10:00:02 [multiproc_executor.py:314] Worker proc"
        " VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.\n"
    )
    assert diagnosis.crash_class == "host_memory_exhausted"
