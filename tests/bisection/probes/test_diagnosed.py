"""Which crashes may come of a device in trouble: after those it is looked at."""

from __future__ import annotations

import pytest

from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.diagnosed import with_diagnosis
from capdoctor.model import Diagnosis, ErrorInfo, ProcessRef, Stage, Verdict


def seen(crash_class: str, error: ErrorInfo | None = None, saw: Saw = Saw.CRASH) -> Observation:
    found = Diagnosis(
        verdict=Verdict.STARTUP_CRASH,
        crash_class=crash_class,
        stage=Stage.CAPTURE,
        component="vllm",
        error=error,
        root_frame=None,
        raised_at=None,
        process=ProcessRef(),
        confidence="likely",
    )
    return with_diagnosis(Observation(saw), found)


@pytest.mark.parametrize(
    "crash_class",
    ["native_crash", "device_not_found", "gpu_memory_busy", "capture_oom", "weights_oom"],
)
def test_what_a_device_in_trouble_causes_as_well_is_suspect(crash_class: str) -> None:
    assert seen(crash_class).suspect


@pytest.mark.parametrize(
    "error",
    [
        ErrorInfo("torch.AcceleratorError", "CUDA error: out of memory", 2),
        ErrorInfo("RuntimeError", "No CUDA GPUs are available", 100),
        ErrorInfo("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)
def test_a_driver_error_of_that_kind_is_suspect_whatever_the_class(error: ErrorInfo) -> None:
    assert seen("unknown", error).suspect


def test_a_hang_is_suspect() -> None:
    assert seen("unknown", saw=Saw.HANG).suspect


@pytest.mark.parametrize(
    ("crash_class", "error"),
    [
        ("capture_host_sync", ErrorInfo("torch.AcceleratorError", "not permitted", 900)),
        ("capture_event_outside_graph", ErrorInfo("torch.AcceleratorError", "invalid", 1)),
        ("capture_metadata_error", ErrorInfo("KeyError", "'x'")),
        ("package_missing", ErrorInfo("ModuleNotFoundError", "No module named 'x'")),
    ],
)
def test_what_a_healthy_device_refuses_is_not(crash_class: str, error: ErrorInfo) -> None:
    found = seen(crash_class, error)
    assert not found.suspect
    assert not found.sticky


def test_a_sticky_error_is_sticky() -> None:
    assert seen("unknown", ErrorInfo("RuntimeError", "m", 719, sticky=True)).sticky
