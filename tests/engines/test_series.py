"""Several runs of one engine."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.series import run_repeated
from capdoctor.errors import CannotDo
from capdoctor.model import EngineSpec, Outcome, RunOutcome
from tests.engines.support import MODEL, diagnose, make_fake_python


@pytest.fixture
def spec(tmp_path: Path) -> EngineSpec:
    python = make_fake_python(tmp_path / "python", "stage", "weights", "fail")
    return EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out")


def test_repeated_runs_are_summed_up_and_each_keeps_its_files(spec: EngineSpec) -> None:
    assert spec.out is not None
    answer = run_repeated(spec, 3, diagnose=diagnose)
    assert [run.outcome for run in answer.runs] == [Outcome.CRASHED] * 3
    assert {run.fingerprint for run in answer.runs} == {"exited-1"}
    assert answer.outcome is Outcome.CRASHED
    for number in (1, 2, 3):
        assert "RuntimeError" in (spec.out / f"run-{number}/engine.log").read_text()
    assert answer.artifacts["all_runs"] == str(spec.out)
    assert len(json.loads((spec.out / "outcome.json").read_text())["runs"]) == 3
    assert not (spec.out / "caches").exists()


def test_one_run_is_a_run_with_its_own_sum(spec: EngineSpec) -> None:
    answer = run_repeated(spec, 1, diagnose=diagnose)
    assert len(answer.runs) == 1
    assert "all_runs" not in answer.artifacts


def test_a_setup_failure_ends_the_repetition(spec: EngineSpec, tmp_path: Path) -> None:
    python = make_fake_python(tmp_path / "python", "report", "refused", "exit", "64")
    with pytest.raises(CannotDo):
        run_repeated(replace(spec, python=python), 3, diagnose=diagnose)


def test_a_series_can_run_outside_the_main_thread(spec: EngineSpec) -> None:
    answers: list[RunOutcome] = []
    thread = threading.Thread(
        target=lambda: answers.append(run_repeated(spec, 2, diagnose=diagnose))
    )
    thread.start()
    thread.join(60)
    assert len(answers[0].runs) == 2
