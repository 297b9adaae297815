"""The virtual device against what a GPU did, row by row."""

from __future__ import annotations

import pytest
import torch

from capdoctor.capture.rules import rules
from tests.capture.cases import Row, read_table, run_row, same_error

MEASURED_WITH, NEWER = "2.11", "2.13"
FIRST_HEAD, FIRST = read_table("legality_h200.jsonl")
SECOND_HEAD, SECOND = read_table("more_operations.jsonl")
NEWER_HEAD, DIFFERING = read_table("more_operations_torch-2.13.jsonl")


def _python_level(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["python_level"]]


def _newer_rows() -> list[Row]:
    """The second table as the newer torch answered it."""
    differing = {(row["case"], row.get("mode")): row for row in DIFFERING}
    measured = [row for row in SECOND if row["case"] not in NEWER_HEAD["not_measured"]]
    return [differing.get((row["case"], row.get("mode")), row) for row in measured]


def _check(row: Row, setup: str, release: str = MEASURED_WITH) -> None:
    got = run_row(row, setup, as_torch=release)
    for name in ("error", "end_error", "after_error"):
        assert same_error(row.get(name), got.get(name)), (name, row.get(name), got.get(name))
    assert got["capture_after"] == row["capture_after"]


@pytest.mark.parametrize("row", _python_level(FIRST), ids=lambda row: row["case"])
def test_ground_truth(row: Row) -> None:
    _check(row, FIRST_HEAD["setup"])


@pytest.mark.parametrize("row", _python_level(SECOND), ids=lambda row: row["case"])
def test_further_operations(row: Row) -> None:
    _check(row, SECOND_HEAD["setup"])


@pytest.mark.parametrize("row", _python_level(_newer_rows()), ids=lambda row: row["case"])
def test_further_operations_with_a_newer_torch(row: Row) -> None:
    _check(row, SECOND_HEAD["setup"], NEWER)


def test_the_newer_torch_differs_in_rows_of_the_table_alone() -> None:
    assert {row["case"] for row in DIFFERING} <= {row["case"] for row in SECOND}
    assert 0 < len(DIFFERING) < 50
    assert all(row["code"] for row in DIFFERING)


def test_every_row_of_the_second_table_has_a_reason() -> None:
    assert len(SECOND) > 1000
    assert all(row["reason"] for row in SECOND)
    assert {row["rule"] for row in SECOND if "rule" in row} <= set(rules())


def test_rows_left_out_say_why() -> None:
    assert [row["case"] for row in SECOND if not row["python_level"]] == [
        "tensordot",
        "other_thread_alloc",
        "eigvals",
    ]


@pytest.mark.parametrize("row", _python_level(FIRST), ids=lambda row: row["case"])
def test_ground_truth_under_inference_mode(row: Row) -> None:
    """Engines run there; torch then hands whole composite operators to the lower net."""
    with torch.inference_mode():
        _check(row, FIRST_HEAD["setup"])
