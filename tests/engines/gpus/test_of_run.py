"""A run says what its GPUs held before and after it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from capdoctor.engines.gpus import of_run
from capdoctor.engines.listener import Quiet
from capdoctor.engines.start import run
from capdoctor.errors import Interrupted
from capdoctor.model import EngineSpec, GpuHolder, GpuMemory, Outcome, RunOutcome, Stage
from tests.engines.gpus.conftest import Machine
from tests.engines.support import MODEL, diagnose, make_fake_python

GIB = 1 << 30
CRASH = ("stage", "weights", "fail")


@dataclass
class Leaking(Quiet):
    """When the run ends, a process of somebody's holds three gibibytes of GPU 1."""

    file: Path

    def run_ending(self, _why: str) -> None:
        gpus = [{"used": [0], "processes": []}, {"used": [3 * GIB], "processes": [os.getpid()]}]
        self.file.write_text(json.dumps({"gpus": gpus}))


def crash(tmp_path: Path, python: Path, listener: Quiet | None = None) -> RunOutcome:
    spec = EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out", timeout=30.0)
    answer = run(spec, listener=listener, diagnose=diagnose)
    assert answer.outcome is Outcome.CRASHED
    return answer


def test_memory_that_is_back_is_told_and_not_complained_about(
    tmp_path: Path, nvml_says: Machine
) -> None:
    nvml_says({"used": [GIB]}, {"used": [0]})
    answer = crash(tmp_path, make_fake_python(tmp_path / "python", *CRASH))
    assert answer.gpu_memory is not None
    assert [(gpu.index, gpu.before, gpu.returned) for gpu in answer.gpu_memory.gpus] == [
        (0, GIB, True),
        (1, 0, True),
    ]
    assert answer.notes == ()
    written = json.loads(Path(answer.artifacts["json"]).read_text())
    assert written["gpu_memory"]["not_measured"] is None
    assert written["gpu_memory"]["gpus"][0]["after"] == GIB


def test_memory_that_is_gone_is_a_note_with_who_has_it(
    tmp_path: Path, nvml_says: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_run.MemoryWatch.finish, "__defaults__", (0.3,))
    file = nvml_says({"used": [0]}, {"used": [0]})
    python = make_fake_python(tmp_path / "python", *CRASH)
    answer = crash(tmp_path, python, Leaking(file))
    assert answer.gpu_memory is not None
    assert [gpu.index for gpu in answer.gpu_memory.kept] == [1]
    (note,) = answer.notes
    assert note.startswith("GPU 1 holds 3072 MiB more than before the run, held by ")
    assert note.endswith(f" {os.getpid()}")


def test_only_the_gpus_that_the_run_may_see_count(
    tmp_path: Path, nvml_says: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    file = nvml_says({"used": [0]}, {"used": [0]})
    python = make_fake_python(tmp_path / "python", *CRASH)
    answer = crash(tmp_path, python, Leaking(file))
    assert answer.gpu_memory is not None
    assert [gpu.index for gpu in answer.gpu_memory.gpus] == [0]
    assert answer.notes == ()


def test_what_was_not_measured_says_so(tmp_path: Path, nvml_says: Machine) -> None:
    nvml_says(error="Driver/library version mismatch")
    answer = crash(tmp_path, make_fake_python(tmp_path / "python", *CRASH))
    assert answer.gpu_memory is not None
    assert answer.gpu_memory.not_measured == (
        "NVML cannot be asked: Driver/library version mismatch"
    )


def test_an_engine_for_the_cpu_has_no_gpu_memory(tmp_path: Path, nvml_says: Machine) -> None:
    nvml_says({"used": [0]})
    python = make_fake_python(tmp_path / "python", *CRASH)
    python.write_text(python.read_text().replace("cuda 13.0", "cpu"))
    assert crash(tmp_path, python).gpu_memory is None


@dataclass
class Interrupting(Leaking):
    """Presses Ctrl-C as soon as the weights are loaded."""

    def stage_began(self, stage: Stage, _seconds: float) -> None:
        if stage is Stage.WEIGHTS:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_run_says_what_stays_on_a_gpu(
    tmp_path: Path, nvml_says: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_run.MemoryWatch.finish, "__defaults__", (0.3,))
    file = nvml_says({"used": [0]}, {"used": [0]})
    python = make_fake_python(tmp_path / "python", "stage", "weights", "hang")
    with pytest.raises(Interrupted, match=r"interrupted by SIGINT .*; GPU 1 holds 3072 MiB more"):
        crash(tmp_path, python, Interrupting(file))


def kept(*holders: GpuHolder) -> GpuMemory:
    return GpuMemory(0, "GPU-0", "H200", 141 * GIB, 0, GIB, returned=False, holders=holders)


@pytest.mark.parametrize(
    ("gpu", "note"),
    [
        (kept(), "and no process is shown that has it"),
        (kept(GpuHolder(7, "python3", GIB)), "held by python3 7"),
        (
            kept(GpuHolder(7, None, None), GpuHolder(8, "ray", 1)),
            "held by a process that cannot be seen 7, ray 8",
        ),
    ],
)
def test_a_note_names_who_can_be_named(gpu: GpuMemory, note: str) -> None:
    assert of_run.kept_note(gpu) == f"GPU 0 holds 1024 MiB more than before the run, {note}"
