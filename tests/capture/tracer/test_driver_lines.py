"""The driver's own log: calls of other threads, by API and thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.capture.tracer.driver_lines import attribute, read_driver_log
from capdoctor.model import Offence, OffenceKind, TracedCall

MAIN, OTHER, STRANGER = 140001, 140002, 140003
LINE = {"threads": {str(MAIN): "MainThread", str(OTHER): "uploader"}}
CONFLICT = "API call conflicts with a stream capture sequence initiated from another thread"


def log(tmp_path: Path, *rows: tuple[int, str]) -> Path:
    path = tmp_path / "driver.log"
    path.write_text("".join(f"[16:21:14.429][{tid}][CUDA][E] {text}\n" for tid, text in rows))
    return path


def refused(code: int, api: str) -> str:
    return f"Returning {code} (CUDA_ERROR_STREAM_CAPTURE) from {api}"


def offence(kind: OffenceKind, operation: str = "native code") -> Offence:
    return Offence(kind, TracedCall(operation, thread="MainThread", thread_id=MAIN, number=3))


def test_a_call_that_no_hook_saw_is_named_with_its_thread(tmp_path: Path) -> None:
    path = log(tmp_path, (OTHER, CONFLICT), (OTHER, refused(900, "cuMemAlloc_v2")))
    found = attribute(offence(OffenceKind.UNSEEN), LINE, read_driver_log(path))
    assert found.kind is OffenceKind.OTHER_THREAD
    assert (found.call.operation, found.call.thread) == ("cuMemAlloc_v2", "uploader")
    assert found.call.thread_id == OTHER
    assert CONFLICT in found.driver[0]


def test_native_code_of_the_same_thread_gets_the_apis_name(tmp_path: Path) -> None:
    path = log(tmp_path, (MAIN, refused(900, "cuModuleLoadData")))
    found = attribute(offence(OffenceKind.UNSEEN), LINE, read_driver_log(path))
    assert (found.kind, found.call.operation) == (OffenceKind.UNSEEN, "cuModuleLoadData")


def test_an_operation_between_two_looks_is_cleared_by_the_drivers_word(tmp_path: Path) -> None:
    path = log(
        tmp_path, (OTHER, refused(900, "cuMemHostAlloc")), (MAIN, refused(901, "cuLaunchKernel"))
    )
    found = attribute(offence(OffenceKind.INVALIDATED, "aten::add_"), LINE, read_driver_log(path))
    assert (found.kind, found.call.thread) == (OffenceKind.OTHER_THREAD, "uploader")


def test_an_operation_that_the_driver_refused_itself_stays_named(tmp_path: Path) -> None:
    path = log(
        tmp_path, (MAIN, refused(900, "cuStreamSynchronize")), (OTHER, refused(900, "cuMemFree"))
    )
    guilty = offence(OffenceKind.INVALIDATED, "torch.Tensor.item")
    found = attribute(guilty, LINE, read_driver_log(path))
    assert (found.kind, found.call) == (guilty.kind, guilty.call)
    assert "cuStreamSynchronize" in found.driver[-1]


def test_an_event_of_a_dead_capture_gets_the_drivers_explanation(tmp_path: Path) -> None:
    why = "Event is not valid. This can be related to a graph capture that is no longer running"
    path = log(
        tmp_path,
        (MAIN, "Returning 201 (CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice_v2"),
        (MAIN, why),
        (MAIN, "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuStreamWaitEvent"),
    )
    found = attribute(offence(OffenceKind.EVENT_OUTSIDE), LINE, read_driver_log(path))
    assert [why in line for line in found.driver] == [True, False]


@pytest.mark.parametrize("kind", [OffenceKind.RAISED, OffenceKind.UNJOINED])
def test_the_log_says_nothing_about_torchs_own_checks(kind: OffenceKind, tmp_path: Path) -> None:
    path = log(tmp_path, (OTHER, refused(900, "cuMemAlloc_v2")))
    assert attribute(offence(kind), LINE, read_driver_log(path)) == offence(kind)


def test_threads_of_other_processes_are_left_out(tmp_path: Path) -> None:
    path = log(tmp_path, (STRANGER, refused(900, "cuMemAlloc_v2")))
    unseen = offence(OffenceKind.UNSEEN)
    assert attribute(unseen, LINE, read_driver_log(path), frozenset({STRANGER})) == unseen
    native = attribute(unseen, LINE, read_driver_log(path))
    assert (native.call.thread, native.call.thread_id) == (None, STRANGER)


@pytest.mark.parametrize(
    "text", ["", "\x00\xff", "[1][2]", "[x][99999][CUDA][E] Returning", "[a][1"]
)
def test_a_log_of_another_form_is_passed_over(text: str, tmp_path: Path) -> None:
    path = tmp_path / "driver.log"
    path.write_text(text, "latin-1")
    assert read_driver_log(path) == ()


def test_a_missing_log_is_no_error(tmp_path: Path) -> None:
    assert read_driver_log(tmp_path / "none") == ()
    assert read_driver_log(None) == ()
