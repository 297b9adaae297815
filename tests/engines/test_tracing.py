"""What is said about how well a run was traced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.rundir import RunFolder
from capdoctor.engines.start import run
from capdoctor.engines.tracing import notes_on
from capdoctor.model import CaptureTrace, EngineSpec, Outcome, RunOutcome
from tests.engines.support import MODEL, diagnose, make_fake_python

TRACED = EngineSpec("vllm", "m", trace=True)


@pytest.fixture
def spec(tmp_path: Path) -> EngineSpec:
    python = make_fake_python(tmp_path / "python", "stage", "config", "report", "ready", "hang")
    return EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out", trace=True)


def run_fake(spec: EngineSpec) -> tuple[RunOutcome, dict[str, str]]:
    answer = run(spec, diagnose=diagnose)
    told = json.loads(Path(answer.artifacts["environment"]).read_text())
    return answer, told["variables"]


def test_a_traced_engine_gets_the_plugin_and_where_to_write(
    spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "mine")
    monkeypatch.setenv("PYTHONPATH", "/users/own")
    answer, variables = run_fake(spec)
    assert answer.outcome is Outcome.STARTED
    assert variables["CAPDOCTOR_TRACE_DIR"] == str(tmp_path / "out/trace")
    assert variables["VLLM_PLUGINS"] == "mine,capdoctor_tracer"
    assert variables["PYTHONPATH"] == f"{tmp_path / 'out/plugin'}:/users/own"
    assert not (tmp_path / "out/plugin").exists()


def test_a_tracer_that_ran_nowhere_is_told_and_leaves_no_empty_folder(
    spec: EngineSpec, tmp_path: Path
) -> None:
    answer, _ = run_fake(spec)
    assert answer.trace is None
    assert answer.notes == ("the capture tracer ran in no process",)
    assert "trace" not in answer.artifacts
    assert not (tmp_path / "out/trace").exists()


def test_without_it_nothing_of_the_tracer_is_there(spec: EngineSpec, tmp_path: Path) -> None:
    answer, variables = run_fake(replace(spec, trace=False))
    assert (answer.trace, answer.notes) == (None, ())
    assert "CAPDOCTOR_TRACE_DIR" not in variables
    assert "plugin" not in variables.get("PYTHONPATH", "")
    assert not (tmp_path / "out/trace").exists()


def test_traces_of_an_earlier_run_do_not_count(spec: EngineSpec, tmp_path: Path) -> None:
    run_fake(spec)
    (tmp_path / "out/trace").mkdir()
    (tmp_path / "out/trace/trace-1.jsonl").write_text('{"kind": "installed", "pid": 1}\n')
    answer, _ = run_fake(spec)
    assert answer.trace is None


def test_faults_of_the_tracer_are_notes_and_not_too_many(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    faults = tuple(f"fault {number}" for number in range(9))
    told = notes_on(CaptureTrace((), 1, 0, faults), TRACED, folder)
    assert told[0] == "the capture tracer stepped aside: fault 0"
    assert len(told) == 4
    assert told[-1] == "and 6 more faults of the tracer"
    assert notes_on(CaptureTrace((), 1), TRACED, folder) == ()


def test_a_run_folder_that_hides_the_plugin_is_the_reason(tmp_path: Path) -> None:
    odd = RunFolder(tmp_path / "a:b")
    [note] = notes_on(None, TRACED, odd)
    assert "PYTHONPATH" in note
    [note] = notes_on(None, replace(TRACED, kind="embedded"), odd)
    assert "PYTHONPATH" not in note
