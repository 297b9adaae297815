"""``repro --trace``, and ``classify`` of what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import has_torch
from tests.helpers.command_line import answer, capdoctor

pytestmark = pytest.mark.skipif(not has_torch(), reason="the embedded engine needs torch")

SWALLOWING = """
import torch

class Model(torch.nn.Module):
    def forward(self, hidden):
        return hidden * self.scale(hidden)

    def scale(self, hidden):
        try:
            return hidden.max().item()
        except RuntimeError:
            return 1.0

def build():
    return Model()

def inputs(batch):
    return (torch.ones(batch, 4, device="cuda"),)
"""
SAME = ("class", "stage", "component", "error", "root_frame", "raised_at", "fingerprint", "fix")


def repro(model: str | Path, out: Path, *more: str) -> dict[str, Any]:
    return answer(capdoctor("repro", "--model", model, "--out", out, "--json", *more))


def test_both_ends_of_the_event_are_shown_and_nothing_else_changes(tmp_path: Path) -> None:
    traced = repro("demo/sparse-mla", tmp_path / "traced", "--trace")
    blind = repro("demo/sparse-mla", tmp_path / "blind")
    assert [span["name"] for span in traced["stages"]] == [span["name"] for span in blind["stages"]]
    found = traced["diagnosis"]
    assert [found[key] for key in SAME] == [blind["diagnosis"][key] for key in SAME]
    assert (found["trace"]["kind"], blind["diagnosis"]["trace"]) == ("event_outside", None)
    assert found["trace"]["call"]["stack"][-1] == found["root_frame"]
    assert found["trace"]["earlier"]["stack"][-1]["function"] == "set_logical_topk_ready"
    assert traced["trace"]["offences"][0] == found["trace"]
    assert (traced["notes"], blind["trace"]) == ([], None)
    assert Path(traced["artifacts"]["trace"]).is_dir()


def test_an_operation_whose_error_was_swallowed_is_named(tmp_path: Path) -> None:
    model = tmp_path / "mine.py"
    model.write_text(SWALLOWING)
    assert repro(model, tmp_path / "blind")["diagnosis"]["class"] == "root_cause_not_in_log"
    found = repro(model, tmp_path / "traced", "--trace")["diagnosis"]
    assert (found["verdict"], found["class"]) == ("startup_crash", "capture_host_sync")
    assert (found["stage"], found["confidence"]) == ("profile_cudagraph_memory", "confirmed")
    assert (found["root_frame"]["line"], found["root_frame"]["function"]) == (10, "scale")
    assert found["error"]["code"] == 900
    assert found["trace"]["end_error"]["code"] == 901


def test_classify_reads_the_trace_that_lies_beside_the_log(tmp_path: Path) -> None:
    model = tmp_path / "mine.py"
    model.write_text(SWALLOWING)
    run = tmp_path / "run"
    found = repro(model, run, "--trace")["diagnosis"]
    for log in (run, run / "engine.log"):
        again = answer(capdoctor("classify", log, "--json"))
        assert [again[key] for key in SAME] == [found[key] for key in SAME]
        assert again["trace"] == found["trace"]
        assert again["confidence"] == "confirmed"
    (run / "engine.log").rename(tmp_path / "alone.log")
    alone = answer(capdoctor("classify", tmp_path / "alone.log", "--json"))
    assert (alone["class"], alone["trace"]) == ("root_cause_not_in_log", None)


def test_every_form_of_the_answer_shows_the_operation(tmp_path: Path) -> None:
    run = tmp_path / "run"
    capdoctor("repro", "--model", "demo/host-sync", "--trace", "--out", run)
    for form in ("text", "md", "sarif"):
        text = capdoctor("classify", run, "--format", form).stdout
        assert "aten::" in text
        assert "_choose_num_splits" in text


def test_a_clean_start_says_that_it_was_traced(tmp_path: Path) -> None:
    done = capdoctor("repro", "--model", "demo/clean", "--trace", "--out", tmp_path / "run")
    assert done.returncode == 0
    assert "no capture was broken" in done.stdout


def test_repeats_are_traced_one_by_one(tmp_path: Path) -> None:
    told = repro("demo/host-sync", tmp_path, "--trace", "--repeat", "2")
    assert told["diagnosis"]["trace"]["kind"] == "invalidated"
    assert len({run["fingerprint"] for run in told["runs"]}) == 1
    for number in (1, 2):
        outcome = json.loads((tmp_path / f"run-{number}/outcome.json").read_text())
        assert outcome["diagnosis"]["trace"] is not None


def test_every_mode_of_a_matrix_is_traced(tmp_path: Path) -> None:
    told = repro("demo/sparse-mla", tmp_path, "--trace", "--matrix")
    assert told["diagnosis"]["trace"]["kind"] == "event_outside"
    outcomes = [json.loads(path.read_text()) for path in tmp_path.glob("*/outcome.json")]
    assert len(outcomes) >= len(told["matrix"])
    assert all(outcome["trace"] is not None for outcome in outcomes)


def test_a_bisection_knows_no_trace() -> None:
    assert "--trace" not in capdoctor("bisect", "--help").stdout
    assert "--trace" in capdoctor("repro", "--help").stdout
