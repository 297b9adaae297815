"""An error line without any log around it: the right class, or modesty."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.logs import read_text
from capdoctor.model import Diagnosis
from tests.diagnosis.expected import DATA

MODEST = {"possible", "unknown"}


def rows(name: str) -> list[dict[str, Any]]:
    text = (DATA / "diagnosis" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def answer_to(text: str) -> Diagnosis:
    return diagnose_parsed(read_text(text), store.load(), None)


@pytest.mark.parametrize("row", rows("pasted.jsonl"), ids=lambda row: row["id"])
def test_line_of_a_public_report(row: dict[str, Any]) -> None:
    diagnosis = answer_to(row["text"])
    assert diagnosis.crash_class == row["class"] or diagnosis.confidence in MODEST


# The forms in which people paste one line: as printed, by rank, cut at 80 columns, in a record.
FORMS = {
    "bare": "{0}",
    "rank": "[rank0]: {0}",
    "cut": "{0:.80}",
    "record": "(EngineCore pid=12) ERROR 10-14 08:01:02 [core.py:1366] {0}",
    "pytest": "E   {0}",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", rows("pasted_forms.jsonl"), ids=lambda row: row["id"])
def test_line_in_every_form(row: dict[str, Any], form: str) -> None:
    diagnosis = answer_to(FORMS[form].format(row["text"]))
    assert diagnosis.crash_class in row["classes"] or diagnosis.confidence in MODEST


@pytest.mark.parametrize(
    "row",
    [row for row in rows("pasted_forms.jsonl") if not row.get("modest")],
    ids=lambda row: row["id"],
)
def test_line_as_printed_gets_its_class(row: dict[str, Any]) -> None:
    assert answer_to(row["text"]).crash_class in row["classes"]


@pytest.mark.parametrize("row", rows("reports.jsonl"), ids=lambda row: row["id"])
def test_excerpt_of_a_public_report(row: dict[str, Any]) -> None:
    diagnosis = answer_to(row["text"])
    assert diagnosis.crash_class == row["class"]
    assert row["stage"] is None or diagnosis.stage == row["stage"]


@pytest.mark.parametrize(
    "text",
    [
        "torch.AcceleratorError: CUDA error: invalid argument",
        "RuntimeError: CUDA error: unspecified launch failure",
        "RuntimeError: HIP error: invalid argument",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "AssertionError",
        "KeyError: 'layers.0'",
        "RuntimeError: shape '[2, 3]' is invalid for input of size 7",
        "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(x)`",
        "RuntimeError: cancelled",
        "RuntimeError: NCCL communicator was aborted on rank 1.",
        "BrokenPipeError: [Errno 32] Broken pipe",
    ],
)
def test_line_that_many_crashes_share_is_never_sure(text: str) -> None:
    assert answer_to(text).confidence in MODEST


@pytest.mark.parametrize(
    "text",
    [
        "operation not permitted when stream is capturing",
        "capturing stream has unjoined work",
        "dependency created on uncaptured work in another stream",
        "no kernel image is available for execution on the device",
        "an illegal memory access was encountered",
    ],
)
def test_hip_wording_gets_the_class_of_cuda_wording(text: str) -> None:
    cuda = answer_to(f"RuntimeError: CUDA error: {text}").crash_class
    assert cuda == answer_to(f"torch.AcceleratorError: HIP error: {text}").crash_class != "unknown"


def test_bind_error_after_the_start_is_no_clean_start() -> None:
    bound = "error while attempting to bind on address ('0.0.0.0', 8000): address already in use"
    text = f"INFO:     Application startup complete.\nERROR:    [Errno 98] {bound}\n"
    assert answer_to(text).crash_class == "port_in_use"


@pytest.mark.parametrize(
    "line",
    [
        "ggml_cuda_init: found 1 CUDA devices:",
        "llama_model_loader: loaded meta data",
        "[TensorRT-LLM][ERROR] Unhandled exception",
    ],
)
def test_gpu_error_of_another_program_is_no_engine_log(line: str) -> None:
    text = f"{line}\nCUDA error: operation not permitted when stream is capturing\n"
    assert answer_to(text).verdict == "not_an_engine_log"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "hello world",
        '127.0.0.1 - - [12/Aug/2026] "GET / HTTP/1.1" 200 12',
        "total 12\ndrwxr-xr-x 2 root root 4096 Nov 29 18:26 .",
        'Traceback (most recent call last):\n  File "/a/b.py", line 1, in f\n    g()\nKeyError: 1',
    ],
)
def test_text_of_something_else_is_no_engine_log(text: str) -> None:
    assert answer_to(text).verdict == "not_an_engine_log"
