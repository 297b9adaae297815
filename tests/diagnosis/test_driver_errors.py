"""Codes out of messages: names before texts, the longest text, libraries before the runtime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.diagnosis.driver_errors import decode, platform_of
from capdoctor.diagnosis.tables import table

ROWS = table("driver_errors")["rows"]
CUDA_ROWS = [(code, name, text) for code, name, text, _, _ in ROWS if text != "-"]


@pytest.mark.parametrize(
    ("code", "name", "text"), CUDA_ROWS, ids=[str(row[0]) for row in CUDA_ROWS]
)
def test_text_after_a_marker_gives_its_code(code: int, name: str, text: str) -> None:
    found = decode(f"CUDA error: {text}")
    assert found is not None
    assert (found.code, found.name) == (code, f"cudaError{name}")


@pytest.mark.parametrize(
    ("code", "hip_name", "hip_text"),
    [
        (code, hip_name or name, hip_text or text)
        for code, name, text, hip_name, hip_text in ROWS
        if hip_name != "-"
    ],
)
def test_hip_text_and_name_give_the_code(code: int, hip_name: str, hip_text: str) -> None:
    for message in (f"HIP error: {hip_text}", f"HIP error: x\nSearch for `hipError{hip_name}' in"):
        found = decode(message)
        assert found is not None
        assert (found.code, found.name, found.api) == (code, f"hipError{hip_name}", "hip")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("CUDA error: operation not permitted when stream is capturing", 900),
        ("HIP error: operation not permitted on an event last recorded in a capturing stream", 907),
        ("CUDA error: operation not permitted", 800),
        ("CUDA error: operation not supported on global/shared address space", 717),
        ("CUDA error: operation not supported", 801),
        ("Triton Error [HIP]:  Code: 209, Messsage: no kernel image is available", 209),
        ("Triton Error [HIP]: Code: 1, Message: x", 1),
        ("CUDA error: x\nSearch for `cudaErrorIllegalAddress' in https://docs", 700),
        ("cuStreamWaitEvent failed: CUDA_ERROR_STREAM_CAPTURE_ISOLATION", 905),
        ("Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:455 'invalid argument'", 1),
        ("NCCL WARN Cuda failure 'dependency created on uncaptured work in another stream'", 905),
        ("NCCL WARN Cuda failure 1 'invalid argument'", 1),
        ("[AITER] /a/b.cu:77 fail to call hipX ---> [HIP error](out of memory)", 2),
        ("Error 804: forward compatibility was attempted on non supported HW", 804),
        ("coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)", 700),
    ],
)
def test_forms_of_many_libraries(message: str, code: int) -> None:
    found = decode(message)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    "message",
    [
        "[Errno 22] Invalid argument",
        "argument --port: invalid argument",
        "out of memory is not what happened",
        "operation not supported by this model",
        "unknown error while parsing",
        "",
        "cudaErrorNobodyKnows",
    ],
)
def test_words_that_only_sound_like_an_error_give_nothing(message: str) -> None:
    assert decode(message) is None


def test_cublas_speaks_before_the_runtime() -> None:
    found = decode("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`")
    assert found is not None
    assert (found.code, found.name, found.api) == (None, "CUBLAS_STATUS_NOT_INITIALIZED", "cublas")


def test_nccl_keeps_its_name_and_the_code_below() -> None:
    found = decode("NCCL error in: x.cpp:1\nncclUnhandledCudaError: Call to CUDA function failed.\n"
                   "Last error:\nCuda failure 'out of memory'")  # fmt: skip
    assert found is not None
    assert (found.name, found.code) == ("ncclUnhandledCudaError", 2)


def test_sticky_are_exactly_the_thirteen_of_the_header() -> None:
    names = {code: name for code, name, *_ in ROWS if name != "-"}
    found = {code: decode(f"cudaError{name}") for code, name in names.items()}
    sticky = {code for code, error in found.items() if error is not None and error.sticky}
    assert sticky == set(table("driver_errors")["sticky"])
    assert len(sticky) == 13


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("HIP error: invalid argument", "rocm"),
        ("CUDA error: x\nSearch for `hipErrorCapturedEvent' in", "rocm"),
        ("CUDA error: invalid argument", "cuda"),
        ("KeyError: 'x'", None),
    ],
)
def test_platform(text: str, platform: str | None) -> None:
    assert platform_of(text) == platform


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    found = decode(text)
    assert found is None or found.api


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("RuntimeError: CUDA error: operation not permitted when stream is captu", 900),
        ("RuntimeError: CUDA error: operation not permitted when", 900),
        ("RuntimeError: HIP error: operation not permitted on an event last rec", 907),
        ("torch.AcceleratorError: CUDA error: an illegal memory acc", 700),
        ("torch.AcceleratorError: CUDA error: capturing stream has unjoi", 904),
        ("RuntimeError: CUDA error: operation not permitted", 800),
    ],
)
def test_text_that_is_cut_at_the_edge_of_a_terminal(text: str, code: int) -> None:
    found = decode(text)
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: an ill",
        "RuntimeError: CUDA error: operation",
        "the operation not permitted when",
        "RuntimeError: CUDA error: no kernel image is av and more",
    ],
)
def test_cut_that_leaves_too_little_or_no_sign_is_no_error(text: str) -> None:
    assert decode(text) is None
