"""Which class an operation stands for."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis.offences import class_of
from capdoctor.diagnosis.tables import table
from capdoctor.model import ErrorInfo, Frame, Offence, OffenceKind, TracedCall
from tests.diagnosis.trace_samples import ERROR_900, ERROR_901, ITEM, REFUSED

PAGEABLE = (
    "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is"
    " pinned."
)
CUBLAS = "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"
RNG = "Attempt to increase offset for a CUDA generator not in capture mode."


def offence(
    kind: OffenceKind,
    error: ErrorInfo | None,
    *stack: str,
    operation: str = "mine::op",
    driver: tuple[str, ...] = (),
) -> Offence:
    frames = tuple(Frame(file, 1, "f") for file in stack)
    return Offence(kind, TracedCall(operation, frames), None, error, ERROR_901, driver)


INVALIDATED, RAISED = OffenceKind.INVALIDATED, OffenceKind.RAISED
RETURNING = "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from "


@pytest.mark.parametrize(
    ("seen", "crash_class"),
    [
        (offence(INVALIDATED, ERROR_900), "capture_host_sync"),
        (offence(RAISED, ErrorInfo("RuntimeError", PAGEABLE)), "capture_unpinned_copy"),
        (offence(INVALIDATED, ErrorInfo("RuntimeError", CUBLAS)), "capture_lazy_workspace"),
        (offence(RAISED, ErrorInfo("RuntimeError", RNG)), "capture_rng_state"),
        (offence(RAISED, ErrorInfo("torch.OutOfMemoryError", "no")), "capture_oom"),
        (offence(INVALIDATED, ErrorInfo("X", "", 905)), "capture_uncaptured_dependency"),
        (offence(INVALIDATED, ErrorInfo("X", "", 906)), "capture_default_stream"),
        (offence(INVALIDATED, ErrorInfo("X", "", 907)), "capture_host_sync"),
        (offence(INVALIDATED, ErrorInfo("X", "", 700)), "capture_illegal_memory_access"),
        (offence(OffenceKind.UNJOINED, None), "capture_unjoined_stream"),
        (offence(OffenceKind.EVENT_OUTSIDE, ErrorInfo("X", "", 1)), "capture_event_outside_graph"),
        (offence(OffenceKind.OTHER_THREAD, ERROR_900), "capture_other_thread"),
        (
            offence(INVALIDATED, ERROR_900, "vllm/a.py", "triton/compiler/compiler.py"),
            "capture_jit_load",
        ),
        (
            offence(INVALIDATED, ERROR_900, "triton/testing.py", "triton/compiler/compiler.py"),
            "capture_jit_load",
        ),
        (
            offence(INVALIDATED, ERROR_900, "triton/runtime/autotuner.py", "triton/x.py"),
            "capture_host_sync",
        ),
        (
            offence(OffenceKind.UNSEEN, None, driver=(f"{RETURNING}cuModuleLoadData",)),
            "capture_jit_load",
        ),
        (
            offence(OffenceKind.UNSEEN, None, driver=(f"{RETURNING}cuMemAlloc_v2",)),
            "capture_lazy_workspace",
        ),
        (
            offence(OffenceKind.UNSEEN, None, driver=(f"{RETURNING}cuStreamSynchronize",)),
            "capture_host_sync",
        ),
    ],
)
def test_the_class_of_an_operation(seen: Offence, crash_class: str) -> None:
    found = class_of(seen)
    assert found is not None
    assert found.crash_class == crash_class


@pytest.mark.parametrize(
    "seen",
    [
        offence(OffenceKind.UNSEEN, None),
        offence(OffenceKind.AT_END, None),
        offence(RAISED, ErrorInfo("KeyError", "'x'")),
        offence(INVALIDATED, ErrorInfo("ValueError", "no")),
    ],
)
def test_what_does_not_tell_gets_no_class(seen: Offence) -> None:
    assert class_of(seen) is None


def test_a_refused_copy_agrees_with_what_older_torch_calls_it() -> None:
    found = class_of(offence(INVALIDATED, ERROR_900, operation="aten::copy_"))
    assert found is not None
    assert found.agrees_with("capture_unpinned_copy")
    assert found.agrees_with("capture_host_sync")
    assert not found.agrees_with("capture_jit_load")


def test_the_code_is_read_out_of_the_message_where_none_is_given() -> None:
    bare = Offence(INVALIDATED, ITEM, None, ErrorInfo("RuntimeError", REFUSED))
    found = class_of(bare)
    assert found is not None
    assert found.crash_class == "capture_host_sync"


def test_every_row_names_a_class_of_the_taxonomy_and_kinds_that_there_are() -> None:
    classes = table("classes")["classes"].keys()
    for row in table("offences")["rows"]:
        assert {row["class"], *row.get("also", ())} <= classes
        assert set(row.get("kind", ())) <= {kind.value for kind in OffenceKind}
        assert row.keys() <= {
            *("kind", "operation", "code", "text", "driver", "stack"),
            *("class", "also", "at_most"),
        }
