"""What else a log gives away: the graph that failed, ranks, arguments."""

from __future__ import annotations

from typing import Any

from capdoctor.diagnosis import diagnose
from tests.diagnosis.expected import DATA

OPEN = DATA / "corpus"


def extra_of(name: str) -> dict[str, Any]:
    return dict(diagnose(OPEN / f"{name}.log").extra)


def test_failing_graph_is_read_from_the_bar() -> None:
    graph = extra_of("vllm-57759-engram-side-stream")["failing_graph"]
    assert (graph["mode"], graph["number"], graph["of"]) == ("PIECEWISE", 8, 11)
    assert graph["source"].startswith("read: ")


def test_sglang_bar_names_the_batch_size() -> None:
    assert extra_of("sglang-7918-compile-in-capture")["failing_graph"]["size"] == 160


def test_finished_bar_names_no_graph() -> None:
    assert "failing_graph" not in extra_of("vllm-48749-mrv2-mtp-capture")


def test_ranks_that_did_and_did_not_crash() -> None:
    ranks = extra_of("vllm-57759-engram-side-stream")["ranks"]
    assert (ranks["printed_an_error"], ranks["printed_none"]) == ([1, 3], [0, 2])
    assert ranks["source"].startswith("read: ")


def test_one_rank_has_nobody_to_differ_from() -> None:
    assert "ranks" not in extra_of("vllm-41848-mig-uuid")


def test_arguments_are_read() -> None:
    arguments = extra_of("vllm-56785-sparse-mla-event")["engine_args"]
    assert arguments["values"]["tensor_parallel_size"] == "4"
    assert arguments["source"] == "read: line 7"
