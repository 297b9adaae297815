"""GPU memory before and after a run, asked of NVML in a child process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from capdoctor.engines.gpus import memory
from capdoctor.engines.gpus.memory import GpuReading, MemoryWatch, compare, read_gpus, visible
from tests.engines.gpus.conftest import FAKES, Machine

GIB = 1 << 30


def reading(index: int, used: int = 0, **processes: int) -> GpuReading:
    return GpuReading(
        index,
        f"GPU-{index}f00-{index}",
        "Fake",
        8 * GIB,
        used,
        {int(pid[1:]): size for pid, size in processes.items()},
    )


def test_a_machine_without_the_driver_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", (Path("/nonexistent"),))
    monkeypatch.setattr(memory, "ask", None)  # nothing is started
    assert read_gpus({}) == "this machine has no NVIDIA driver"
    assert MemoryWatch({}).finish().not_measured == "this machine has no NVIDIA driver"


def test_what_nvml_says_is_read(nvml_says: Machine) -> None:
    nvml_says({"used": [5 * GIB], "processes": [os.getpid()]}, {"used": [1], "old_driver": True})
    gpus = read_gpus({})
    assert not isinstance(gpus, str)
    assert [(gpu.index, gpu.uuid, gpu.name, gpu.used) for gpu in gpus] == [
        (0, "GPU-0000", "Fake GPU", 5 * GIB),
        (1, "GPU-0001", "Fake GPU", 1),
    ]
    assert [dict(gpu.processes) for gpu in gpus] == [{os.getpid(): None}, {}]


def test_memory_that_comes_back_after_a_while_is_back(nvml_says: Machine) -> None:
    file = nvml_says({"used": [0]}, {"used": [0]})
    watch = MemoryWatch({})
    file.write_text(file.read_text().replace("[0]", f"[{4 * GIB}, {2 * GIB}, 1048576]"))
    begin = time.monotonic()
    facts = watch.finish(seconds=20.0)
    assert time.monotonic() - begin < 10
    assert [(gpu.before, gpu.after, gpu.returned) for gpu in facts.gpus] == [(0, 1 << 20, True)] * 2
    assert facts.kept == ()


def test_memory_that_stays_is_named_with_who_has_it(nvml_says: Machine) -> None:
    file = nvml_says({"used": [GIB], "processes": []}, {"used": [0]})
    watch = MemoryWatch({})
    file.write_text(
        file.read_text().replace(f"[{GIB}]", f"[{3 * GIB}]").replace(": []", f": [{os.getpid()}]")
    )
    facts = watch.finish(seconds=0.5)
    (kept,) = facts.kept
    assert (kept.index, kept.before, kept.after) == (0, GIB, 3 * GIB)
    assert [holder.pid for holder in kept.holders] == [os.getpid()]
    assert kept.holders[0].name is not None


def test_a_neighbour_that_has_come_is_not_waited_for(nvml_says: Machine) -> None:
    """The run's own processes are gone by then: who lives there is somebody else."""
    file = nvml_says({"used": [0], "processes": []})
    watch = MemoryWatch({})
    text = file.read_text().replace("[0]", f"[{GIB}]")
    file.write_text(text.replace(": []", f": [{os.getpid()}]"))
    begin = time.monotonic()
    facts = watch.finish(seconds=30.0)
    assert time.monotonic() - begin < 15
    assert [holder.pid for holder in facts.kept[0].holders] == [os.getpid()]


def test_memory_of_a_process_that_is_gone_is_waited_for(nvml_says: Machine) -> None:
    file = nvml_says({"used": [0], "processes": []})
    watch = MemoryWatch({})
    text = file.read_text().replace("[0]", f"[{GIB}, {GIB}, 0]")
    file.write_text(text.replace(": []", ": [4194999]"))  # above the largest process number
    assert watch.finish(seconds=30.0).kept == ()


def test_a_holder_of_before_is_no_holder_of_what_came_since() -> None:
    before = [reading(0, GIB, p11=GIB)]
    after = [reading(0, 3 * GIB, p11=GIB, p12=2 * GIB)]
    (found,) = compare(before, after)
    assert [holder.pid for holder in found.holders] == [12]
    assert [holder.memory for holder in found.holders] == [2 * GIB]


@pytest.mark.parametrize("used", [GIB, GIB + memory.SLACK, 0])
def test_what_the_driver_keeps_is_no_leak(used: int) -> None:
    (found,) = compare([reading(0, GIB)], [reading(0, used, p12=1)])
    assert found.returned
    assert found.holders == ()


def test_a_gpu_that_was_not_there_before_is_left_out() -> None:
    assert compare([reading(0)], [reading(0), reading(1)])[0].index == 0
    assert len(compare([reading(0)], [reading(0), reading(1)])) == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"error": "Driver Not Loaded"}, "NVML cannot be asked: Driver Not Loaded"),
        ({"gpus": [{"used": [0]}, {"lost": True}]}, "GPU 1 does not answer: GPU is lost"),
    ],
    ids=["no-driver", "lost"],
)
def test_what_cannot_be_measured_says_why(
    nvml_says: Machine, more: dict[str, object], why: str
) -> None:
    nvml_says(**more)
    assert read_gpus({}) == why


def test_a_lost_gpu_that_the_run_does_not_see_is_no_reason_not_to_measure(
    nvml_says: Machine,
) -> None:
    nvml_says({"used": [GIB]}, {"lost": True})
    gpus = read_gpus({"CUDA_VISIBLE_DEVICES": "0"})
    assert [gpu.used for gpu in gpus if not isinstance(gpu, str)] == [GIB]
    assert read_gpus({"CUDA_VISIBLE_DEVICES": "1"}) == "GPU 1 does not answer: GPU is lost"


@pytest.mark.parametrize(
    ("env", "indices"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1"}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-0001"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
    ],
)
def test_among_several_kinds_of_gpu_a_number_is_only_known_by_the_order_of_the_bus(
    nvml_says: Machine, env: dict[str, str], indices: list[int]
) -> None:
    nvml_says({"used": [0], "name": "A"}, {"used": [0], "name": "B"})
    gpus = read_gpus(env)
    assert [gpu.index for gpu in gpus if not isinstance(gpu, str)] == indices


@pytest.mark.parametrize("broken", ["import nowhere.at_all.really", "nvmlInit = 1 / 0", "x = ("])
def test_a_broken_package_is_a_reason_not_a_crash(
    nvml_says: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    nvml_says({"used": [0]})
    (tmp_path / "pynvml.py").write_text(f"print('{{}}')\n{broken}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    why = read_gpus({})
    assert isinstance(why, str)
    assert why == "nvidia-ml-py is not installed" or "it ended with exit 1: " in why


def test_a_package_that_prints_does_not_disturb(
    nvml_says: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml_says({"used": [GIB]})
    text = (FAKES / "pynvml.py").read_text()
    (tmp_path / "pynvml.py").write_text(
        text.replace("import json", "print('{}', end='')\nimport json")
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    gpus = read_gpus({})
    assert [gpu.used for gpu in gpus if not isinstance(gpu, str)] == [GIB]


def test_without_the_package_the_memory_is_not_measured(
    nvml_says: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml_says({"used": [0]})
    (tmp_path / "pynvml.py").write_text("raise ImportError('no module named pynvml')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert read_gpus({}) == "nvidia-ml-py is not installed"


def test_a_driver_that_never_answers_costs_a_deadline(
    nvml_says: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml_says({"used": [0]}, hang=True)
    monkeypatch.setattr(memory, "READ_SECONDS", 1.0)
    begin = time.monotonic()
    assert read_gpus({}) == "the question for the GPUs' memory failed: no answer within 1 s"
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize(
    ("variable", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("0, 1", [0, 1]),
        ("0,7,1", [0]),
        ("0,0", [0]),
        ("GPU-1f", [1]),
        ("GPU-", []),
        ("GPU-2f00-2,GPU-0f00", [2, 0]),
        ("NoDevFiles", []),
        ("MIG-3a", [0, 1, 2]),
    ],
)
def test_visible_devices_are_read_as_cuda_reads_them(
    variable: str | None, indices: list[int]
) -> None:
    gpus = [reading(0), reading(1), reading(2)]
    assert [gpu.index for gpu in visible(gpus, variable)] == indices
