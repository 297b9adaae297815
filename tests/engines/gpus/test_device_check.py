"""The known-good program on a driver that works, refuses, hangs, or computes wrongly."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from capdoctor.engines.gpus import device_check, memory
from capdoctor.engines.gpus.device_check import DeviceState, device_state, gpus_needed
from capdoctor.model import EngineSpec
from tests.engines.gpus.conftest import Machine

REPLAYED = (
    "GPU 1 (Fake GPU B): after the replay of a graph its memory holds 0x23ccf instead of 0x23cce"
)


def ask(driver: Path, needed: int = 0, **variables: str) -> DeviceState:
    return device_state({"LD_LIBRARY_PATH": str(driver), **variables}, needed)


def test_gpus_that_work_are_named(fake_driver: Path) -> None:
    state = ask(fake_driver, FAKE_CUDA_DEVICES="2")
    assert state.works
    assert state.why == "a known-good program runs on Fake GPU A, Fake GPU B"
    assert 0 < state.seconds < 10


def test_only_as_many_as_needed_are_looked_at(fake_driver: Path) -> None:
    broken = {"FAKE_CUDA_DEVICES": "4", "FAKE_CUDA_FAIL": "cuMemAlloc_v2=2@2"}
    assert ask(fake_driver, 2, **broken).works
    assert not ask(fake_driver, 4, **broken).works


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        (
            {"FAKE_CUDA_FAIL": "cuInit=999"},
            "no GPU can be used: cuInit gave CUDA_ERROR_999 (999)",
        ),
        (
            {"FAKE_CUDA_FAIL": "cuDevicePrimaryCtxRetain=2@1"},
            "GPU 1 (Fake GPU B): cuDevicePrimaryCtxRetain gave CUDA_ERROR_OUT_OF_MEMORY (2)",
        ),
        (
            {"FAKE_CUDA_FAIL": "cuStreamSynchronize=719"},
            "GPU 0 (Fake GPU A): cuStreamSynchronize gave CUDA_ERROR_LAUNCH_FAILED (719)",
        ),
        (
            {"FAKE_CUDA_FAIL": "cuStreamEndCapture=901"},
            "GPU 0 (Fake GPU A): cuStreamEndCapture gave CUDA_ERROR_901 (901)",
        ),
        (
            {"FAKE_CUDA_FAIL": "cuModuleLoadData=719"},
            "GPU 0 (Fake GPU A): cuModuleLoadData gave CUDA_ERROR_LAUNCH_FAILED (719)",
        ),
        (
            {"FAKE_CUDA_FAIL": "cuMemcpyPeer=226"},
            "GPU 1 (Fake GPU B): cuMemcpyPeer gave CUDA_ERROR_226 (226)",
        ),
        (
            {"FAKE_CUDA_WRONG": "1"},
            REPLAYED,
        ),
        (
            {"CUDA_VISIBLE_DEVICES": "1", "FAKE_CUDA_FAIL": "cuStreamCreate=999"},
            "GPU 1 (Fake GPU A): cuStreamCreate gave CUDA_ERROR_999 (999)",
        ),
        (
            {"CUDA_VISIBLE_DEVICES": "7"},
            "no GPU can be used: cuDeviceGetCount gave CUDA_ERROR_NO_DEVICE (100)",
        ),
    ],
)
def test_a_gpu_that_does_not_work_is_named(
    fake_driver: Path, variables: Mapping[str, str], why: str
) -> None:
    state = ask(fake_driver, FAKE_CUDA_DEVICES="2", **variables)
    assert (state.works, state.why) == (False, why)


def test_fewer_gpus_than_needed_are_no_good(fake_driver: Path) -> None:
    state = ask(fake_driver, 2, FAKE_CUDA_DEVICES="2", CUDA_VISIBLE_DEVICES="0")
    assert (state.works, state.why) == (False, "no GPU can be used: 2 needed, and 1 can be seen")


def test_a_driver_without_compiler_is_no_fault_of_the_gpu(fake_driver: Path) -> None:
    state = ask(fake_driver, FAKE_CUDA_FAIL="cuModuleLoadData=221")
    assert state.works
    assert state.why.endswith(
        "without a kernel: cuModuleLoadData gave CUDA_ERROR_JIT_COMPILER_NOT_FOUND (221)"
    )


def test_a_wedged_gpu_costs_a_deadline(fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_check, "BASE_SECONDS", 1.5)
    begin = time.monotonic()
    state = ask(fake_driver, FAKE_CUDA_HANG="cuStreamSynchronize")
    assert (state.works, state.why) == (
        False,
        "a known-good program gives no answer within 1.5 s",
    )
    assert time.monotonic() - begin < 8


def test_a_machine_without_a_driver_library_says_so(tmp_path: Path) -> None:
    state = ask(tmp_path)
    assert not state.works
    assert state.why.startswith("no GPU can be used: libcuda.so.1")


def test_who_holds_the_memory_is_said_where_it_is_missing(
    fake_driver: Path, nvml_says: Machine
) -> None:
    nvml_says({"used": [8 << 30], "processes": [1]})
    state = ask(fake_driver, FAKE_CUDA_FAIL="cuMemAlloc_v2=2")
    assert state.why.startswith(
        "GPU 0 (Fake GPU A): cuMemAlloc gave CUDA_ERROR_OUT_OF_MEMORY (2); 8192 of 8192 MiB are in "
        "use, by "
    )
    assert state.why.endswith(" 1")


@pytest.fixture
def with_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", (tmp_path,))


def test_a_machine_without_gpus_has_nothing_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", ())
    assert gpus_needed(EngineSpec("embedded", "demo/clean", device="cuda")) is None


@pytest.mark.usefixtures("with_driver")
def test_the_virtual_device_and_a_cpu_engine_take_no_gpu(tmp_path: Path) -> None:
    from tests.engines.support import make_fake_python

    assert gpus_needed(EngineSpec("embedded", "demo/clean")) is None
    assert gpus_needed(EngineSpec("embedded", "demo/clean", device="cuda")) == 1
    cuda = make_fake_python(tmp_path)
    cpu = cuda.with_name("cpu-python")
    cpu.write_text(cuda.read_text().replace("cuda 13.0", "cpu"))
    cpu.chmod(0o755)
    assert gpus_needed(EngineSpec("vllm", "m", python=cpu)) is None
    assert gpus_needed(EngineSpec("vllm", "m", python=cuda)) == 1


@pytest.mark.usefixtures("with_driver")
def test_every_rank_needs_a_gpu(tmp_path: Path) -> None:
    from tests.engines.support import make_fake_python

    python = make_fake_python(tmp_path)
    spec = EngineSpec("vllm", "m", python=python, tensor_parallel_size=2)
    assert gpus_needed(spec) == 2
    arguments = {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}
    assert gpus_needed(EngineSpec("vllm", "m", python=python, engine_args=arguments)) == 4
