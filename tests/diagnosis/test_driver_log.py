from __future__ import annotations

from pathlib import Path

from capdoctor.diagnosis.driver_log import parse_driver_lines, read_driver_log

REAL = Path(__file__).parent.parent / "data/diagnosis/driver-log-sparse-mla-h200.txt"
PROBED = (
    "[1:2:3.4][7][CUDA][E] No CUDA context is current to the calling thread\n"
    "[1:2:3.4][7][CUDA][E] Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice_v2\n"
)


def test_the_log_of_a_real_crash_says_why_and_nothing_else() -> None:
    assert read_driver_log(REAL).sentences == (
        "Event is not valid. This can be related to a graph capture that is no longer running",
        "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamWaitEvent",
    )


def test_the_reason_of_a_harmless_probe_goes_with_it() -> None:
    assert parse_driver_lines(PROBED) == ()


def test_the_same_reason_of_another_call_stays() -> None:
    text = PROBED.replace("cuCtxGetDevice_v2", "cuLaunchKernel")
    assert parse_driver_lines(text) == (
        "No CUDA context is current to the calling thread",
        "Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuLaunchKernel",
    )


def test_another_threads_reason_is_not_taken_for_the_probes() -> None:
    first, second = PROBED.splitlines()
    text = f"{first}\n{first.replace('[7]', '[8]')}\n{second}\n"
    assert parse_driver_lines(text) == ("No CUDA context is current to the calling thread",)


def test_reasons_without_a_code_are_kept() -> None:
    text = "[1:2:3.4][7][CUDA][E] one\n[1:2:3.4][7][CUDA][E] two\nnoise\n"
    assert parse_driver_lines(text) == ("one", "two")


def test_a_missing_log_counts_as_empty(tmp_path: Path) -> None:
    assert read_driver_log(tmp_path / "none").sentences == ()
    assert read_driver_log(None).sentences == ()


def test_two_ranks_whose_libraries_probe_say_only_why_they_crashed() -> None:
    real = REAL.with_name("driver-log-two-ranks-h200.txt")
    assert read_driver_log(real).sentences == read_driver_log(REAL).sentences


def test_a_probe_with_another_code_is_no_probe() -> None:
    text = PROBED.replace("201 (CUDA_ERROR_INVALID_CONTEXT)", "700 (CUDA_ERROR_ILLEGAL_ADDRESS)")
    assert (
        parse_driver_lines(text)[-1]
        == "Returning 700 (CUDA_ERROR_ILLEGAL_ADDRESS) from cuCtxGetDevice_v2"
    )
