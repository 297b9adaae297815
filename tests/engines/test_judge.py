"""From how a run went to what is answered."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from capdoctor.engines.embedded import EXIT_SETUP_FAILED, SETUP_FAILED
from capdoctor.engines.ended import Departure, Ended
from capdoctor.engines.judge import describe_code, exit_code, outcome_of, process_ends
from capdoctor.model import Outcome, Stage

EXIT_1 = 1 << 8
ENDED = Ended(
    how="exited",
    why="the engine process ended",
    seconds=12.3456,
    main_pid=10,
    stage=Stage.WEIGHTS,
    spans=(),
    departures=[Departure(10, "python start_vllm.py", 12.0, EXIT_1, by_us=False)],
)


def with_worker(status: int | None, *, seconds: float = 11.0, by_us: bool = False) -> Ended:
    worker = Departure(12, "VLLM::Worker", seconds, status, by_us)
    names = {12: "Worker_TP1"}
    return replace(ENDED, departures=[*ENDED.departures, worker], names=names)


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ("ready", Outcome.STARTED),
        ("stopped_after_stage", Outcome.STOPPED_AFTER_STAGE),
        ("hung", Outcome.HUNG),
        ("timed_out", Outcome.HUNG),
        ("interrupted", Outcome.INTERRUPTED),
        ("lost", Outcome.SETUP_FAILED),
        ("exited", Outcome.CRASHED),
    ],
)
def test_each_way_to_end_has_its_outcome(how: str, outcome: Outcome) -> None:
    ended = replace(ENDED, how=how)  # type: ignore[arg-type]
    found, reason = outcome_of(ended, "vllm", {})
    assert found is outcome
    assert reason
    assert not reason.endswith(".")


def test_who_vanished_first_is_named() -> None:
    _, reason = outcome_of(with_worker(int(signal.SIGSEGV)), "vllm", {})
    expected = "the front end ended with exit 1 in stage weights; "
    assert reason == expected + "first to go was Worker_TP1 12 (SIGSEGV)"


def of_a_crash(*others: tuple[str, int | None]) -> str:
    """Give what follows on the end of the front end when others went before it, in this order."""
    gone = [
        Departure(20 + at, f"VLLM::{name}", 10.0 + at / 10, status, by_us=False)
        for at, (name, status) in enumerate(others)
    ]
    names = {20 + at: name for at, (name, _) in enumerate(others)}
    ended = replace(ENDED, departures=[*gone, *ENDED.departures], names=names)
    return outcome_of(ended, "vllm", {})[1].partition("; ")[2]


@pytest.mark.parametrize(
    ("others", "told"),
    [
        # As two ranks of a real engine went: both had told their error, then were told to end.
        (
            [("Worker_TP1", 0), ("Worker_TP0", None), ("EngineCore", EXIT_1)],
            "first seen to fail was EngineCore 22 (exit 1)",
        ),
        (
            [("Worker_TP1", 0), ("Worker_TP0", int(signal.SIGSEGV)), ("EngineCore", EXIT_1)],
            "first seen to fail was Worker_TP0 21 (SIGSEGV)",
        ),
        ([("Worker_TP1", None), ("EngineCore", EXIT_1)], "first to go was Worker_TP1 20 (unknown)"),
        ([("Worker_TP1", EXIT_1), ("Worker_TP0", 0)], "first to go was Worker_TP1 20 (exit 1)"),
        ([("Worker_TP1", 0)], "first to go was Worker_TP1 20 (exit 0)"),
        ([("Worker_TP1", 0), ("EngineCore", None)], "first to go was Worker_TP1 20 (exit 0)"),
        ([], ""),
    ],
)
def test_a_process_that_ended_well_is_not_named_where_another_failed(
    others: list[tuple[str, int | None]], told: str
) -> None:
    assert of_a_crash(*others) == told


def test_a_worker_that_went_later_is_not_blamed() -> None:
    _, reason = outcome_of(with_worker(EXIT_1, seconds=12.5), "vllm", {})
    assert "first to go" not in reason


def test_a_status_that_nobody_saw_is_unknown_unless_the_log_has_it() -> None:
    ends = process_ends(with_worker(None), "vllm")
    assert [(end.name, end.end) for end in ends] == [
        ("Worker_TP1", "unknown"),
        ("front end", "exit 1"),
    ]
    told = replace(with_worker(None), codes={"Worker_TP1": -9})
    assert process_ends(told, "vllm")[0].end == "SIGKILL (says the log)"


def test_whom_we_ended_is_marked() -> None:
    ends = process_ends(with_worker(int(signal.SIGKILL), by_us=True), "vllm")
    assert ends[0].end == "SIGKILL (ended by capdoctor)"
    ends = process_ends(with_worker(None, by_us=True), "vllm")
    assert ends[0].end == "(ended by capdoctor)"


def test_helpers_that_ended_well_are_left_out() -> None:
    probe = Departure(11, "python -m vllm.model_executor.models.registry", 5.0, None, by_us=False)
    compiler = Departure(13, "/usr/bin/g++ x.cpp", 6.0, 0, by_us=False)
    broken = Departure(14, "/usr/bin/nvcc x.cu", 7.0, EXIT_1, by_us=False)
    ended = replace(ENDED, departures=[probe, compiler, broken, *ENDED.departures])
    assert [end.pid for end in process_ends(ended, "vllm")] == [14, 10]


def test_a_process_that_would_not_die_is_told() -> None:
    ends = process_ends(replace(ENDED, left=(99,)), "vllm")
    assert (ends[-1].pid, ends[-1].end) == (99, "still there")


def test_ready_and_then_a_bad_exit_is_a_start() -> None:
    assert outcome_of(ENDED, "vllm", {"step": "ready"})[0] is Outcome.STARTED


def test_a_refusal_and_a_good_exit_without_a_start_are_setup_failures() -> None:
    refused = {"step": "refused", "reason": "no such argument"}
    assert outcome_of(ENDED, "vllm", refused) == (Outcome.SETUP_FAILED, "no such argument")
    well = replace(ENDED, departures=[replace(ENDED.departures[0], status=0)])
    assert outcome_of(well, "vllm", {})[0] is Outcome.SETUP_FAILED
    assert outcome_of(replace(well, stage=Stage.SERVING), "embedded", {})[0] is Outcome.STARTED


def test_the_embedded_engine_says_itself_that_nothing_was_started() -> None:
    line = f"{SETUP_FAILED}the file defines no build()"
    gone = [replace(ENDED.departures[0], status=EXIT_SETUP_FAILED << 8)]
    ended = replace(ENDED, last_line=line, departures=gone)
    assert outcome_of(ended, "embedded", {}) == (
        Outcome.SETUP_FAILED,
        "the file defines no build()",
    )
    assert outcome_of(ended, "vllm", {})[0] is Outcome.CRASHED


def test_the_exit_code_is_negative_for_a_signal_and_none_if_it_was_ours() -> None:
    assert exit_code(ENDED) == 1
    killed = replace(ENDED.departures[0], status=int(signal.SIGKILL))
    assert exit_code(replace(ENDED, departures=[killed])) == -9
    assert exit_code(replace(ENDED, departures=[replace(killed, by_us=True)])) is None


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit 0"), (3, "exit 3"), (-11, "SIGSEGV"), (-64, "SIGRTMAX")]
)
def test_codes_are_said_as_people_say_them(code: int, text: str) -> None:
    assert describe_code(code) == text


def test_a_model_that_only_prints_that_sentence_crashed() -> None:
    ended = replace(ENDED, last_line=f"{SETUP_FAILED}not true")
    assert outcome_of(ended, "embedded", {})[0] is Outcome.CRASHED
