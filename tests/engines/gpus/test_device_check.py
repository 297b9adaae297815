"""The known-good program on a driver that works, refuses, hangs, or computes wrongly."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from capdoctor.engines.gpus import device_check
from capdoctor.engines.gpus.asking import NoAnswer
from capdoctor.engines.gpus.device_check import DeviceState, device_state
from tests.engines.gpus.conftest import Machine

NO_DEVICE = "cuDeviceGetCount gave CUDA_ERROR_NO_DEVICE (100)"
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
            f"no GPU can be used, with CUDA_VISIBLE_DEVICES='7': {NO_DEVICE}",
        ),
        (
            {"CUDA_VISIBLE_DEVICES": ""},
            f"no GPU can be used, with CUDA_VISIBLE_DEVICES='': {NO_DEVICE}",
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
    assert (state.works, state.why) == (
        False,
        "no GPU can be used, with CUDA_VISIBLE_DEVICES='0': 2 needed, and 1 can be seen",
    )


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


FULL = {"used": [8 << 30], "processes": [1]}
NO_MEMORY = "cuMemAlloc gave CUDA_ERROR_OUT_OF_MEMORY (2)"


def uuid_of(device: int) -> str:
    """Give the UUID that the fake driver gives a device."""
    return f"GPU-00000000-0000-0000-0000-{0xA0 + device:012x}"


def test_who_holds_the_memory_is_said_where_it_is_missing(
    fake_driver: Path, nvml_says: Machine
) -> None:
    nvml_says({"used": [0]}, {**FULL, "uuid": uuid_of(0)})  # NVML counts in another order
    state = ask(fake_driver, FAKE_CUDA_FAIL="cuMemAlloc_v2=2")
    assert state.why.startswith(
        f"GPU 0 (Fake GPU A): {NO_MEMORY}; 8192 of 8192 MiB are in use, by "
    )
    assert state.why.endswith(" 1")


def test_of_a_gpu_that_nvml_does_not_know_nobody_is_said_to_have_the_memory(
    fake_driver: Path, nvml_says: Machine
) -> None:
    """A part of a GPU (MIG) has a UUID of its own."""
    nvml_says(FULL)
    state = ask(fake_driver, FAKE_CUDA_FAIL="cuMemAlloc_v2=2")
    assert state.why == f"GPU 0 (Fake GPU A): {NO_MEMORY}"


def test_a_driver_that_tells_no_uuid_is_as_good_as_another(fake_driver: Path) -> None:
    assert ask(fake_driver, FAKE_CUDA_FAIL="cuDeviceGetUuid=500").works


@pytest.mark.parametrize("more", [{}, {"FAKE_CUDA_FAIL": "cuStreamSynchronize=719"}])
def test_a_driver_that_logs_to_stdout_is_understood(
    fake_driver: Path, more: Mapping[str, str]
) -> None:
    state = ask(fake_driver, CUDA_LOG_FILE="stdout", **more)
    assert state.works is not bool(more)
    assert "Fake GPU A" in state.why


@pytest.mark.parametrize(
    ("needed", "variable", "gpus"),
    [(2, None, 2), (0, None, 8), (0, "0,1,2", 3), (0, "GPU-1f", 1), (0, "", 8), (4, "0", 4)],
)
def test_every_gpu_that_is_looked_at_has_its_time(
    needed: int, variable: str | None, gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_check, "count_gpus", lambda: 8)
    given = []

    def nothing(_command: object, _env: object, seconds: float, _keys: object) -> NoAnswer:
        given.append(seconds)
        return NoAnswer("nothing was asked")

    monkeypatch.setattr(device_check, "ask", nothing)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    device_state({} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}, needed)
    assert given == [device_check.BASE_SECONDS + device_check.EACH_SECONDS * gpus]
