from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from capdoctor.model import ErrorInfo, Evidence, Frame, Json, Outcome, RunSummary, Verdict
from capdoctor.report.card import TITLES, diagnosis_card, error_text, frame_text
from capdoctor.report.markdown import diagnosis_markdown
from capdoctor.report.run_card import run_card
from capdoctor.report.sarif import sarif
from capdoctor.report.terminal import show_card
from tests.helpers.samples import CLEAN, RUN, SPARSE


def text_of(lines: object) -> str:
    stream = io.StringIO()
    show_card(lines, stream)  # type: ignore[arg-type]
    return stream.getvalue()


def test_the_first_line_says_what_where_when_and_how_sure() -> None:
    assert diagnosis_card(SPARSE)[0].text == (
        "CRASH AT START-UP | capture_event_outside_graph | stage profile_cudagraph_memory"
        " | component vllm | confidence confirmed"
    )


def test_the_card_holds_every_answer_on_one_screen() -> None:
    card = text_of(diagnosis_card(SPARSE))
    for part in (
        "torch.AcceleratorError: CUDA error: invalid argument (cudaErrorInvalidValue, 1)",
        "index_group.py:140 in _convert_once",
        "An event recorded in a captured segment",
        "412: torch.AcceleratorError",
        "1 other error: RuntimeError (line 440: front end)",
        "capdoctor apply-fix sparse-mla",
        "mixed batches run eagerly",
        "fixed in 0.30.0",
    ):
        assert part in card
    assert card.count("\n") <= 24


def test_a_clean_start_is_one_line_and_its_version() -> None:
    assert text_of(diagnosis_card(CLEAN)) == (
        "CLEAN START | confidence confirmed\nversions      vllm 0.30.0 (read: line 3)\n"
    )


def test_every_verdict_has_a_title() -> None:
    assert set(TITLES) == set(Verdict)


def test_brackets_of_a_log_survive_and_escapes_do_not() -> None:
    hostile = replace(SPARSE, error=ErrorInfo("X", "[rank0]: [/tmp/x.py:3] [bold] \x1b[2J"))
    card = text_of(diagnosis_card(hostile))
    assert "[rank0]: [/tmp/x.py:3] [bold] \\x1b[2J" in card
    assert "\x1b" not in card


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_text_is_not_read_as_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    hostile = replace(SPARSE, error=ErrorInfo("X", "[rank0]: [/tmp/x.py:3] [bold] \x1b[2J :smile:"))
    stream = Terminal()
    show_card(diagnosis_card(hostile), stream)
    assert "[rank0]: [/tmp/x.py:3] [bold]" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()
    assert ":smile:" in stream.getvalue()


def test_a_long_message_is_cut_and_only_its_first_line_shown() -> None:
    assert len(error_text(ErrorInfo("T", "x" * 5000 + "\nsecond"))) <= 300


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (None, ""),
        (Frame("a.py", 3, "f"), "a.py:3 in f"),
        (Frame("csrc/x.cuh", 164, None), "csrc/x.cuh:164"),
        (Frame("a.py", None, None), "a.py"),
    ],
)
def test_a_frame_is_shown_with_the_parts_that_are_known(frame: Frame | None, text: str) -> None:
    assert frame_text(frame) == text


def test_a_run_says_how_far_it_came_and_where_its_files_are() -> None:
    card = text_of(run_card(RUN))
    assert card.startswith("CRASHED after 43.2 s: vllm 0.30.0\n")
    assert "import 20.0 s, profile_cudagraph_memory (ended here)" in card
    assert "/runs/1/engine.log" in card


def test_repeats_are_counted_only_when_there_are_several() -> None:
    twice = (RunSummary(Outcome.CRASHED, "s1:a"), RunSummary(Outcome.STARTED, None))
    assert "1 of 2 crashed, 1 of them alike" in text_of(run_card(replace(RUN, runs=twice)))
    assert "repeats" not in text_of(run_card(replace(RUN, runs=twice[:1])))


def test_a_line_of_the_drivers_log_is_no_line_0() -> None:
    driver = Evidence(0, "Event is not valid", "the driver says")
    follow = replace(SPARSE.follow_on[0], line=0)
    found = replace(SPARSE, evidence=(driver,), follow_on=(follow,))
    card = text_of(diagnosis_card(found))
    markdown = diagnosis_markdown(found)
    for text in (card, markdown):
        assert "driver log: " in text
        assert "line 0" not in text
    result = json.loads(sarif({"a.log": found}))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    assert result["relatedLocations"] == []


def test_a_hung_engine_has_its_stacks_named() -> None:
    files = {"folder": "/runs/1", "log": "/runs/1/engine.log", "after_end": "/runs/1/after-end.log"}
    hung = text_of(run_card(replace(RUN, outcome=Outcome.HUNG, artifacts=files)))
    assert "stacks        /runs/1/after-end.log" in hung
    assert "after-end" not in text_of(run_card(replace(RUN, artifacts=files)))


@pytest.mark.parametrize(
    ("name", "rank", "raised", "tail"),
    [
        ("Worker_PP1_TP0", None, ["PP0_TP0", "PP1_TP0"], "; the same in rank PP0_TP0"),
        ("Worker_PP1_TP0", 0, ["PP1_TP0"], ""),
        ("EngineCore", None, [0, 1], "; raised in ranks 0, 1"),
        ("EngineCore", None, [], ""),
    ],
)
def test_ranks_are_told_apart_by_number_or_place(
    name: str, rank: int | None, raised: list[Json], tail: str
) -> None:
    process = replace(SPARSE.process, name=name, pid=None, rank=rank)
    found = replace(SPARSE, process=process, extra={"ranks": {"raised_it": raised}})
    (line,) = [line.text for line in diagnosis_card(found) if line.label == "process"]
    assert line.removeprefix(name).removeprefix(f", rank {rank}") == tail


@pytest.mark.parametrize(
    ("raised", "tail"),
    [([0, 1], "; the same in rank 0"), ([0, 1, 3], "; the same in ranks 0, 3"), ([1], "")],
)
def test_every_rank_that_crashed_is_named(raised: list[int], tail: str) -> None:
    process = replace(SPARSE.process, name="Worker_TP1", pid=7, rank=1)
    ranks = {"raised_it": list[Json](raised), "printed_none": list[Json]()}
    found = replace(SPARSE, process=process, extra={"ranks": ranks})
    (line,) = [line.text for line in diagnosis_card(found) if line.label == "process"]
    assert line == f"Worker_TP1, pid 7, rank 1{tail}"
