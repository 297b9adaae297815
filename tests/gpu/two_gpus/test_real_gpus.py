"""Real GPUs, asked by a known-good program and by NVML."""

from __future__ import annotations

import os

import pytest

from capdoctor.engines.gpus.device_check import device_state
from capdoctor.engines.gpus.memory import MemoryWatch, read_gpus
from tests.gpu.two_gpus.watching import memory_held

pytestmark = pytest.mark.gpu


def test_every_gpu_computes_captures_replays_and_copies() -> None:
    state = device_state({})
    assert state.works, state.why
    assert "without a kernel" not in state.why


def test_a_gpu_that_is_not_there_does_not_work() -> None:
    assert "NO_DEVICE" in device_state({"CUDA_VISIBLE_DEVICES": "99"}).why


def test_a_gpu_whose_memory_is_gone_does_not_work_and_the_holder_is_named() -> None:
    with memory_held(os.environ) as said:
        assert said.startswith("holding")
        state = device_state({"CUDA_VISIBLE_DEVICES": "0"})
        assert not state.works
    assert "GPU 0" in state.why
    assert device_state({"CUDA_VISIBLE_DEVICES": "0"}).works


def test_a_check_leaves_no_memory_behind() -> None:
    pytest.importorskip("pynvml")
    watch = MemoryWatch(os.environ)
    assert device_state({}).works
    facts = watch.finish()
    assert facts.not_measured is None
    assert facts.kept == ()
    assert not isinstance(read_gpus({}), str)
