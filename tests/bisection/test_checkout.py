"""``bisect probe`` after a fault: a broken GPU stops git, it is no verdict on a commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from capdoctor.bisection.checkout import CheckoutVerdict, GitExit, judge_checkout
from capdoctor.engines.gpus import memory
from capdoctor.engines.gpus.device_check import DeviceState
from capdoctor.model import (
    Diagnosis,
    EngineInfo,
    EngineSpec,
    ErrorInfo,
    Frame,
    Outcome,
    ProcessRef,
    RunOutcome,
    Stage,
    Verdict,
)

SPEC = EngineSpec("embedded", "m.py", device="cuda")


def crash(fingerprint: str, *, sticky: bool) -> RunOutcome:
    found = Diagnosis(
        verdict=Verdict.STARTUP_CRASH,
        crash_class="unknown",
        stage=Stage.CAPTURE,
        component="vllm",
        error=ErrorInfo("RuntimeError", "CUDA error: something", 719, sticky=sticky),
        root_frame=Frame("vllm/a.py", 3, "f"),
        raised_at=None,
        process=ProcessRef(),
        confidence="confirmed",
        fingerprint=fingerprint,
    )
    info = EngineInfo("embedded", None, None)
    return RunOutcome(Outcome.CRASHED, "it ended", info, (), 1.0, diagnosis=found)


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of a run that crashed, on a machine with a driver."""
    monkeypatch.setattr(memory, "DRIVER_NODES", (tmp_path,))
    folder = tmp_path / "run"
    folder.mkdir()
    body = {"outcome": "crashed", "diagnosis": {"fingerprint": "s1:ours", "class": "unknown"}}
    (folder / "outcome.json").write_text(json.dumps(body))
    return folder


def judged(
    outcome: RunOutcome, reference: Path | None, *, works: bool
) -> tuple[CheckoutVerdict, list[int]]:
    asked: list[int] = []

    def ask(_env: Mapping[str, str], needed: int) -> DeviceState:
        asked.append(needed)
        return DeviceState(works, "GPU 0: cuInit gave CUDA_ERROR_UNKNOWN (999)", 0.1)

    found = judge_checkout(Path.cwd(), SPEC, reference, run_engine=lambda _: outcome, ask=ask)
    return found, asked


def test_another_crash_of_a_broken_device_stops_git(reference: Path) -> None:
    found, asked = judged(crash("s1:other", sticky=True), reference, works=False)
    assert (found.exit_code, asked) == (GitExit.STOP, [1])
    assert "the device fails by itself (GPU 0: cuInit gave CUDA_ERROR_UNKNOWN" in found.reason


def test_any_crash_of_a_broken_device_stops_git_without_a_reference(reference: Path) -> None:
    del reference
    found, _ = judged(crash("s1:other", sticky=True), None, works=False)
    assert found.exit_code is GitExit.STOP


def test_the_very_crash_is_bad_whatever_it_leaves_behind(reference: Path) -> None:
    found, asked = judged(crash("s1:ours", sticky=True), reference, works=False)
    assert (found.exit_code, asked) == (GitExit.BAD, [])


def test_a_fault_on_a_device_that_works_is_judged_as_ever(reference: Path) -> None:
    found, asked = judged(crash("s1:other", sticky=True), reference, works=True)
    assert (found.exit_code, asked) == (GitExit.CANNOT_JUDGE, [1])


def test_a_crash_that_breaks_no_device_asks_none(reference: Path) -> None:
    found, asked = judged(crash("s1:other", sticky=False), reference, works=False)
    assert (found.exit_code, asked) == (GitExit.CANNOT_JUDGE, [])
