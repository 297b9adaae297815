"""Which frame is the root frame."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis.frames import is_actionable, root_frame
from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import UNNAMED, NativeEvent, StackFrame, package_path
from capdoctor.model import Frame

SITE = "/usr/local/lib/python3.12/dist-packages/"


def frame(file: str, function: str = "f", line: int = 1) -> StackFrame:
    return StackFrame(file, line, function, "", package_path(file))


def incident(*files: str, native: tuple[StackFrame, ...] = ()) -> Incident:
    frames = tuple(frame(file) for file in files)
    return Incident(
        0, "python", "ValueError", "", UNNAMED, "unknown", 1, 1, 1, frames, native_frames=native
    )


@pytest.mark.parametrize(
    "file",
    [
        SITE + "torch/_ops.py",
        SITE + "torch/nn/modules/module.py",
        SITE + "torch/utils/_contextlib.py",
        SITE + "torch/cuda/graphs.py",
        SITE + "pydantic/_internal/_dataclasses.py",
        SITE + "huggingface_hub/file_download.py",
        SITE + "zmq/sugar/poll.py",
        SITE + "uvloop/__init__.py",
        "/usr/lib/python3.12/asyncio/runners.py",
        "/usr/lib/python3.12/multiprocessing/process.py",
        "/root/.local/share/uv/python/cpython-3.13/lib/python3.13/threading.py",
        "<frozen importlib._bootstrap>",
        "uvloop/loop.pyx",
        "/tmp/torchinductor_root/ab/cabc.py",
        SITE + "vllm/tracing/otel.py",
    ],
)
def test_plumbing_is_passed_over(file: str) -> None:
    assert not is_actionable(frame(file))


@pytest.mark.parametrize(
    "file",
    [
        SITE + "vllm/v1/worker/gpu_worker.py",
        SITE + "triton/backends/nvidia/compiler.py",
        SITE + "torch/_inductor/runtime/triton_heuristics.py",
        SITE + "flashinfer/jit/env.py",
        SITE + "transformers/utils/hub.py",
        "/home/u/my_model.py",
        "demo/sparse_mla.py",
    ],
)
def test_code_that_someone_can_change_is_not(file: str) -> None:
    assert is_actionable(frame(file))


def test_innermost_actionable_frame_is_the_root() -> None:
    found = root_frame(incident(SITE + "vllm/a.py", SITE + "vllm/b.py", SITE + "torch/_ops.py"))
    assert found == Frame("vllm/b.py", 1, "f")


def test_plumbing_is_shown_when_nothing_else_is_there() -> None:
    found = root_frame(incident("/usr/lib/python3.12/runpy.py", SITE + "torch/_ops.py"))
    assert found == Frame("torch/_ops.py", 1, "f")


def test_file_outside_a_package_keeps_its_path() -> None:
    assert root_frame(incident("/srv/x/run.py")) == Frame("/srv/x/run.py", 1, "f")


def test_native_frames_of_interpreter_and_c_library_hold_no_cause() -> None:
    native = (
        StackFrame("./signal/../sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c", 0, "0x7f"),
        StackFrame("Objects/dictobject.c", 970, "dictkeys_generic_lookup"),
    )
    assert root_frame(incident(native=native)) is None
    cause = StackFrame("misc/cudawrap.cc", 92, "ncclCuMemHostEnable")
    assert root_frame(incident(native=(*native, cause))) == Frame(
        "misc/cudawrap.cc", 92, "ncclCuMemHostEnable"
    )


def test_native_line_names_its_source() -> None:
    event = NativeEvent("native_check", 1, UNNAMED, "x", file="/w/csrc/custom.cuh", lineno=164)
    one = Incident(0, "native", None, "x", UNNAMED, "unknown", 1, 1, 1, event=event)
    assert root_frame(one) == Frame("csrc/custom.cuh", 164, None)
