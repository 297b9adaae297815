"""The stage of an error whose own frames or lines do not say it."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.logs import read_text
from capdoctor.model import Diagnosis

HEAD = "INFO 10-14 08:01:02 [core.py:101] Initializing a V1 LLM engine (v0.20.2) with config: m='m'"
LOADED = "INFO 10-14 08:02:02 [default_loader.py:290] Loading weights took 9.41 seconds"
CODE = "/usr/local/lib/python3.12/dist-packages/vllm/"


def answer_to(*lines: str) -> Diagnosis:
    return diagnose_parsed(read_text("\n".join(lines) + "\n"), store.load(), None)


def captured(method: str) -> list[str]:
    """An error that passed the ``with`` of a capture, and the echo that holds the frames above."""
    return [
        "Traceback (most recent call last):",
        f'  File "{CODE}compilation/cuda_graph.py", line 319, in __call__',
        "    output = self.runnable(*args, **kwargs)",
        f'  File "{CODE}model_executor/models/m.py", line 30, in forward',
        "    if int(x.max()):",
        "RuntimeError: CUDA error: operation not permitted when stream is capturing",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        f'  File "{CODE}v1/worker/gpu_model_runner.py", line 6064, in {method}',
        "    self._warmup_and_capture(",
        f'  File "{CODE}compilation/cuda_graph.py", line 318, in __call__',
        "    with torch.cuda.graph(",
        '  File "/x/dist-packages/torch/cuda/graphs.py", line 130, in capture_end',
        "    super().capture_end()",
        "RuntimeError: CUDA error: operation failed due to a previous error during capture",
    ]


@pytest.mark.parametrize(
    ("method", "stage"),
    [("capture_model", "capture"), ("profile_cudagraph_memory", "profile_cudagraph_memory")],
)
def test_echo_of_the_capture_tells_the_stage_of_its_cause(method: str, stage: str) -> None:
    diagnosis = answer_to(*captured(method))
    assert diagnosis.stage == stage
    assert diagnosis.error is not None
    assert diagnosis.error.code == 900
    assert diagnosis.root_frame is not None
    assert diagnosis.root_frame.file == "vllm/model_executor/models/m.py"


def imported_badly() -> list[str]:
    return [
        "Traceback (most recent call last):",
        '  File "/x/site-packages/xformers/ops/__init__.py", line 3, in <module>',
        "    import numpy",
        "AttributeError: _ARRAY_API not found",
    ]


def test_error_that_the_start_survived_is_no_sure_answer() -> None:
    diagnosis = answer_to(*imported_badly(), HEAD, LOADED)
    assert diagnosis.confidence not in {"confirmed", "likely"}


def test_the_same_error_at_the_end_may_be_sure() -> None:
    assert answer_to(HEAD, *imported_badly()).crash_class == "abi_mismatch"
