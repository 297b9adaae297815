"""Every operation of the measured table, executed inside a capture under the tracer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.cases import DATA, read_table
from tests.capture.tracer.traced import Names, run
from tests.gpu.tracer.cases import capturing

ROWS = [row for row in read_table("legality_h200.jsonl")[1] if row["python_level"]]
EXPECTED = json.loads((DATA.parent / "tracer" / "names.json").read_text("utf-8"))


def inside_a_capture(row: dict[str, Any]) -> Callable[[Names], object]:
    def call(names: Names) -> object:
        with capturing(names):
            exec(compile(row["code"], "<case>", "exec"), names)  # noqa: S102
        return None

    return call


@pytest.mark.parametrize("row", [r for r in ROWS if not r["legal"]], ids=lambda row: row["case"])
def test_an_illegal_operation_is_the_one_that_is_named(row: dict[str, Any], tmp_path: Path) -> None:
    traced = run(inside_a_capture(row), tmp_path)
    assert traced.trace is not None
    assert traced.trace.faults == ()
    (offence,) = traced.trace.offences
    assert re.search(EXPECTED[row["case"]], f"{offence.call.operation} {offence.call.called_as}")
    assert offence.call.place is not None
    assert offence.call.place.file == "<case>"
    assert (offence.call.thread, offence.call.number) == ("MainThread", 1)


@pytest.mark.parametrize("row", [r for r in ROWS if r["legal"]], ids=lambda row: row["case"])
def test_nothing_legal_is_named(row: dict[str, Any], tmp_path: Path) -> None:
    traced = run(inside_a_capture(row), tmp_path)
    assert traced.trace is not None
    assert (traced.trace.offences, traced.trace.faults) == ((), ())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"])
def test_tracing_changes_no_outcome(row: dict[str, Any], tmp_path: Path) -> None:
    plain, traced = run(inside_a_capture(row), None), run(inside_a_capture(row), tmp_path)
    assert (plain.result, plain.errors) == (traced.result, traced.errors)
