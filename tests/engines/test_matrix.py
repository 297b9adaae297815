"""The graph modes of one engine: which are run, how far, and what is known without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.matrix import graph_modes, run_matrix, workarounds
from capdoctor.model import EngineInfo, EngineSpec, MatrixRow, Outcome, RunOutcome, Stage
from tests.engines.support import MODEL, Recorder, diagnose, make_fake_python

BASE = RunOutcome(Outcome.CRASHED, "", EngineInfo("vllm", None, None), (), 1.0)
MODES = ("FULL", "FULL_DECODE_ONLY", "PIECEWISE", "NONE", "eager")
READY = ("report", "ready", "hang")
FAIL = ("stage", "weights", "fail")


def config(mode: str, **more: str) -> tuple[str, str]:
    """Give the actions that print a configuration as vLLM does."""
    rest = "".join(f", {name}={value}" for name, value in more.items())
    text = f"Initializing a V1 LLM engine (v0.33.0) with config: model='x'{rest},"
    return "say", f"INFO [core.py:133] {text} compilation_config={{'cudagraph_mode': {mode}}}"


def engine(folder: Path, asked: tuple[str, ...], **modes: tuple[str, ...]) -> EngineSpec:
    """Make an engine that does in each graph mode what is said; ``asked`` where nothing is."""
    cases: Mapping[str | None, tuple[str, ...]] = {None: asked, **modes}
    script = make_fake_python(folder / "python")
    text = script.read_text()
    start = text[text.index("exec ") : text.index(";;\nesac")]
    branches = "".join(
        f'elif grep -q \'"graph_mode": "{mode}"\' "$2"; then {start} {_quoted(actions)}\n'
        for mode, actions in cases.items()
        if mode is not None
    )
    script.write_text(
        text.replace(start, f"if false; then :\n{branches}else {start} {_quoted(asked)}\nfi")
    )
    return EngineSpec("vllm", str(MODEL), python=script, out=folder / "out")


def _quoted(actions: tuple[str, ...]) -> str:
    import shlex

    return shlex.join(actions)


def outcomes(answer: RunOutcome) -> dict[str, Outcome]:
    return {row.mode: row.outcome for row in answer.matrix}


def same(answer: RunOutcome) -> dict[str, str | None]:
    return {row.mode: row.same_as for row in answer.matrix if row.same_as}


def test_a_matrix_finds_which_modes_start(tmp_path: Path) -> None:
    heard = Recorder()
    refused = ("report", "refused", "exit", "64")
    spec = engine(tmp_path, FAIL, EAGER=READY, NONE=READY, PIECEWISE=refused)
    answer = run_matrix(spec, listener=heard, diagnose=diagnose)
    assert outcomes(answer) == {
        "FULL": Outcome.CRASHED,
        "FULL_DECODE_ONLY": Outcome.CRASHED,
        "PIECEWISE": Outcome.SETUP_FAILED,
        "NONE": Outcome.STARTED,
        "eager": Outcome.STARTED,
    }
    assert [row.mode for row in answer.matrix] == list(MODES)
    assert answer.outcome is Outcome.CRASHED
    assert [workaround.do for workaround in answer.workarounds_verified] == [
        "-cc.cudagraph_mode=NONE",
        "--enforce-eager",
    ]
    assert len(heard.endings) == 6
    assert same(answer) == {}


def test_once_a_cheap_mode_starts_the_costlier_ones_go_no_further_than_the_crash(
    tmp_path: Path,
) -> None:
    past = ("stage", "weights", "stage", "profile_run", "sleep", "1", *READY)
    modes = {"EAGER": READY, "FULL_DECODE_ONLY": READY, "PIECEWISE": past, "NONE": past}
    answer = run_matrix(engine(tmp_path, FAIL, **modes), diagnose=diagnose)
    assert outcomes(answer) == {
        "FULL": Outcome.CRASHED,
        "FULL_DECODE_ONLY": Outcome.STARTED,
        "PIECEWISE": Outcome.STOPPED_AFTER_STAGE,
        "NONE": Outcome.STOPPED_AFTER_STAGE,
        "eager": Outcome.STARTED,
    }
    assert answer.workarounds_verified[0].do == "-cc.cudagraph_mode=FULL_DECODE_ONLY"
    assert "not to the end" in answer.workarounds_verified[1].cost


def test_modes_of_an_engine_that_starts_are_all_seen_to_their_end(tmp_path: Path) -> None:
    answer = run_matrix(engine(tmp_path, READY), diagnose=diagnose)
    assert set(outcomes(answer).values()) == {Outcome.STARTED}
    assert answer.workarounds_verified == ()


def test_the_users_own_stop_holds_for_every_mode(tmp_path: Path) -> None:
    past = ("stage", "weights", "stage", "profile_run", "hang")
    spec = replace(engine(tmp_path, FAIL, EAGER=past, NONE=past), stop_after=Stage.WEIGHTS)
    answer = run_matrix(spec, diagnose=diagnose)
    assert outcomes(answer)["eager"] is Outcome.STOPPED_AFTER_STAGE
    assert outcomes(answer)["NONE"] is Outcome.STOPPED_AFTER_STAGE


def test_what_fails_alike_in_eager_before_graphs_is_not_tried_in_every_mode(
    tmp_path: Path,
) -> None:
    heard = Recorder()
    answer = run_matrix(engine(tmp_path, FAIL), listener=heard, diagnose=diagnose)
    assert set(outcomes(answer).values()) == {Outcome.CRASHED}
    assert same(answer) == dict.fromkeys(MODES[:-1], "eager")
    assert len(heard.endings) == 2
    assert answer.workarounds_verified == ()


@pytest.mark.parametrize(
    "eager",
    [
        ("stage", "weights", "exit", "7"),  # another crash
        ("stage", "weights", "stage", "profile_run", "fail"),
    ],
)
def test_another_failure_in_eager_proves_nothing_about_the_modes(
    tmp_path: Path, eager: tuple[str, ...]
) -> None:
    heard = Recorder()
    spec = engine(tmp_path, ("stage", "profile_run", "fail"), EAGER=eager)
    answer = run_matrix(spec, listener=heard, diagnose=diagnose)
    assert same(answer) == {}
    assert len(heard.endings) == 6


def test_a_mode_that_the_engine_takes_for_another_is_ended_as_soon_as_that_is_seen(
    tmp_path: Path,
) -> None:
    """As the CPU engine does, which has no graphs: every mode is NONE to it."""
    none = (*config("NONE"), "hang")
    eager = (*config("NONE", enforce_eager="True"), *READY)
    asked = (*config("NONE"), *FAIL)
    modes = dict.fromkeys(("FULL", "FULL_DECODE_ONLY", "PIECEWISE", "NONE"), none)
    answer = run_matrix(engine(tmp_path, asked, EAGER=eager, **modes), diagnose=diagnose)
    assert same(answer) == dict.fromkeys(MODES[:-1], "as asked")
    assert outcomes(answer) == {
        **dict.fromkeys(MODES[:-1], Outcome.CRASHED),
        "eager": Outcome.STARTED,
    }


def test_a_mode_that_is_changed_to_another_has_that_ones_outcome(tmp_path: Path) -> None:
    """As vLLM does where the attention backend cannot capture what was asked for."""
    both, full = "<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>", "<CUDAGraphMode.FULL: 2>"
    warning = (
        "WARNING CUDAGraphMode.FULL is not supported; setting cudagraph_mode=FULL_AND_PIECEWISE"
    )
    graphs = ("stage", "profile_cudagraph_memory")
    asked = (*config(both), *graphs, "fail")
    modes = {
        "EAGER": (*config("NONE"), *READY),
        "NONE": (*config("NONE", level="3"), *READY),
        "PIECEWISE": (*config("<CUDAGraphMode.PIECEWISE: 1>"), *graphs, "fail"),
        "FULL_DECODE_ONLY": (*config("<CUDAGraphMode.FULL_DECODE_ONLY: (2, 0)>"), *READY),
        "FULL": (*config(full), "say", warning, *graphs, "hang"),
    }
    answer = run_matrix(engine(tmp_path, asked, **modes), diagnose=diagnose)
    assert same(answer) == {"FULL": "as asked"}
    assert outcomes(answer)["FULL"] is Outcome.CRASHED
    assert outcomes(answer)["FULL_DECODE_ONLY"] is Outcome.STARTED


def test_a_mode_that_the_engine_takes_for_another_is_not_sold_at_its_own_price(
    tmp_path: Path,
) -> None:
    """Where a backend cannot capture at all, FULL is NONE, and costs what NONE costs."""
    both = "<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>"
    warning = "WARNING CUDAGraphMode.FULL is not supported; setting cudagraph_mode=NONE"
    graphs = ("stage", "profile_cudagraph_memory")
    crash = (*config(both), *graphs, "fail")
    modes = {
        "EAGER": (*config("NONE", enforce_eager="True"), *READY),
        "FULL": (*config("<CUDAGraphMode.FULL: 2>"), "say", warning, *graphs, *READY),
        "NONE": (*config("<CUDAGraphMode.NONE: 0>"), *graphs, "hang"),
    }
    answer = run_matrix(engine(tmp_path, crash, **modes), diagnose=diagnose)
    assert same(answer)["NONE"] == "FULL"
    assert [found.do for found in answer.workarounds_verified] == [
        "-cc.cudagraph_mode=NONE",
        "--enforce-eager",
    ]


@pytest.mark.parametrize(
    ("became", "left"),
    [
        ({}, ["FULL", "NONE", "eager"]),
        ({"FULL": None, "eager": "NONE"}, ["FULL", "NONE", "eager"]),
        ({"FULL": "FULL", "NONE": "NONE"}, ["FULL", "NONE", "eager"]),
        ({"FULL": "FULL_AND_PIECEWISE"}, ["FULL", "NONE", "eager"]),  # a mode of no row of its own
        ({"FULL": "NONE", "NONE": "NONE"}, ["NONE", "eager"]),
        ({"FULL": "PIECEWISE"}, ["NONE", "eager"]),  # which did not start
    ],
)
def test_a_mode_stands_for_itself_alone(became: dict[str, str | None], left: list[str]) -> None:
    names = ("FULL", "NONE", "eager")
    rows = [MatrixRow(name, Outcome.STARTED, None, 1.0) for name in names]
    options = {mode.name: mode.do for mode in graph_modes()}
    found = [workaround.do for workaround in workarounds(BASE, rows, became)]
    assert found == [options[name] for name in left]


def test_an_engine_that_starts_as_asked_needs_no_workaround() -> None:
    rows = [MatrixRow("eager", Outcome.STARTED, None, 1.0)]
    assert workarounds(replace(BASE, outcome=Outcome.STARTED), rows) == ()
    assert len(workarounds(BASE, rows)) == 1


def test_a_mode_that_was_stopped_early_says_how_far_it_was_seen() -> None:
    rows = [MatrixRow("NONE", Outcome.STOPPED_AFTER_STAGE, None, 1.0)]
    limited = workarounds(BASE, rows)[0]
    assert "not to the end of start-up" in limited.cost
    assert limited.do == "-cc.cudagraph_mode=NONE"  # ready to be typed


def test_the_modes_of_the_contract_are_there_with_their_price() -> None:
    assert {mode.name for mode in graph_modes()} == set(MODES)
    assert all(mode.cost and mode.do for mode in graph_modes())
