"""Several runs of one engine."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.series import graph_modes, run_matrix, run_repeated, workarounds
from capdoctor.errors import CannotDo
from capdoctor.model import EngineInfo, EngineSpec, MatrixRow, Outcome, RunOutcome
from tests.engines.support import MODEL, Recorder, diagnose, make_fake_python

BASE = RunOutcome(Outcome.CRASHED, "", EngineInfo("vllm", None, None), (), 1.0)


@pytest.fixture
def spec(tmp_path: Path) -> EngineSpec:
    python = make_fake_python(tmp_path / "python", "stage", "weights", "fail")
    return EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out")


def fake_by_mode(folder: Path) -> Path:
    """Make a Python whose engine crashes unless graphs are off, and knows no PIECEWISE."""
    script = make_fake_python(folder)
    text = script.read_text()
    start = text[text.index("exec ") : text.index(";;\nesac")]
    cases = f"""if grep -q '"EAGER"\\|"NONE"' "$2"; then {start} report ready hang
elif grep -q '"PIECEWISE"' "$2"; then {start} report refused exit 64
else {start} stage weights fail; fi"""
    script.write_text(text.replace(start, cases))
    return script


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


def test_a_matrix_finds_which_modes_start(spec: EngineSpec, tmp_path: Path) -> None:
    heard = Recorder()
    python = fake_by_mode(tmp_path / "python")
    answer = run_matrix(replace(spec, python=python), listener=heard, diagnose=diagnose)
    assert [(row.mode, row.outcome) for row in answer.matrix] == [
        ("FULL", Outcome.CRASHED),
        ("FULL_DECODE_ONLY", Outcome.CRASHED),
        ("PIECEWISE", Outcome.SETUP_FAILED),
        ("NONE", Outcome.STARTED),
        ("eager", Outcome.STARTED),
    ]
    assert answer.outcome is Outcome.CRASHED
    assert [workaround.do for workaround in answer.workarounds_verified] == [
        "-cc.cudagraph_mode=NONE",
        "--enforce-eager",
    ]
    assert len(heard.endings) == 6


def test_an_engine_that_starts_as_asked_needs_no_workaround() -> None:
    rows = [MatrixRow("eager", Outcome.STARTED, None, 1.0)]
    assert workarounds(replace(BASE, outcome=Outcome.STARTED), rows) == ()
    assert len(workarounds(BASE, rows)) == 1


def test_a_mode_that_was_stopped_early_says_how_far_it_was_seen() -> None:
    rows = [MatrixRow("NONE", Outcome.STOPPED_AFTER_STAGE, None, 1.0)]
    assert "not to the end of start-up" in workarounds(BASE, rows)[0].do


def test_the_modes_of_the_contract_are_there_with_their_price() -> None:
    names = {mode.name for mode in graph_modes()}
    assert names == {"eager", "FULL", "FULL_DECODE_ONLY", "PIECEWISE", "NONE"}
    assert all(mode.cost and mode.do for mode in graph_modes())


def test_a_series_can_run_outside_the_main_thread(spec: EngineSpec) -> None:
    answers: list[RunOutcome] = []
    thread = threading.Thread(
        target=lambda: answers.append(run_repeated(spec, 2, diagnose=diagnose))
    )
    thread.start()
    thread.join(60)
    assert len(answers[0].runs) == 2
