"""The forked processes of the measurement: deaths, company, deadlines. Needs no GPU."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.gpu.rules import known, measure, processes
from tests.gpu.rules.processes import Row

LEGAL = {"error": None, "end_error": None, "capture_after": "active"}


def _rows(*names: str) -> list[Row]:
    return [{"case": name} for name in names]


def _work(row: Row) -> Row:
    if row["case"].startswith("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if row["case"].startswith("raises"):
        raise ValueError(row["case"])
    if row["case"].startswith("sleeps"):
        time.sleep(60)
    error = {"type": "E", "code": 900, "message": ""} if row["case"].startswith("breaks") else None
    return LEGAL | {"error": error, "pid": os.getpid()}


def _run(batches: list[list[Row]], seconds: float = 20.0) -> dict[str, Row]:
    answers = processes.run_all(batches, _work, processes=3, deadline=time.monotonic() + seconds)
    rows = list(answers)
    assert len({row["case"] for row in rows}) == len(rows)
    return {row["case"]: row for row in rows}


def test_every_row_comes_back_once_with_its_answer() -> None:
    rows = _run([_rows("a", "b"), _rows("c")])
    assert set(rows) == {"a", "b", "c"}
    assert all(row["capture_after"] == "active" for row in rows.values())


def test_legal_rows_share_a_process_and_the_first_is_alone() -> None:
    rows = _run([_rows("a", "b", "c")])
    assert len({row["pid"] for row in rows.values()}) == 1
    assert [rows[name]["alone"] for name in "abc"] == [True, False, False]


def test_nothing_runs_after_a_row_that_broke_something() -> None:
    rows = _run([_rows("a", "breaks", "b")])
    assert rows["a"]["pid"] == rows["breaks"]["pid"]
    assert rows["b"]["pid"] != rows["breaks"]["pid"]
    assert rows["b"]["alone"]


def test_a_death_is_a_result_and_the_others_go_on() -> None:
    rows = _run([_rows("a", "dies", "b")])
    assert rows["dies"]["died"] == -signal.SIGKILL
    assert rows["b"]["capture_after"] == "active"


def test_a_fault_of_the_harness_is_written_into_the_row() -> None:
    rows = _run([_rows("raises", "b")])
    assert "ValueError: raises" in rows["raises"]["harness_error"]
    assert rows["b"]["error"] is None


def test_what_the_deadline_cuts_off_says_so() -> None:
    started = time.monotonic()
    rows = _run([_rows(f"sleeps{n}", f"after{n}") for n in range(5)], seconds=0.5)
    assert time.monotonic() - started < 10
    assert len(rows) == 10
    assert all(row.get("not_measured") for row in rows.values())


@pytest.mark.parametrize(
    "change",
    [
        {"error": {}},
        {"thread_error": {}},
        {"end_error": {}},
        {"after_error": {}},
        {"capture_after": "invalidated"},
        {"before_error": {}},
        {"capture_after": None},
    ],
)
def test_only_what_left_nothing_behind_is_clean(change: Row) -> None:
    assert processes.clean(LEGAL)
    assert not processes.clean(LEGAL | change)


def test_the_rows_cover_the_first_table_and_all_modes() -> None:
    rows, setups = measure.rule_rows()
    first = [row for row in rows if row["setup"] == "first"]
    assert len(first) == 3 * 43
    assert {row["mode"] for row in first} == set(measure.MODES)
    assert {row["setup"] for row in rows} <= set(setups)
    names = [(row["case"], row.get("mode")) for row in rows if row["setup"] == "cases"]
    assert len(names) == len(set(names))


def test_only_inputs_of_the_tables_are_run_again() -> None:
    for rows, _setups in (measure.rule_rows(), measure.operation_rows()):
        assert not any({"error", "capture_after", "end_error"} & set(row) for row in rows)


def test_a_row_differs_by_outcome_and_not_by_the_tail_of_a_message() -> None:
    error = {"type": "AcceleratorError", "code": 900, "message": "CUDA error: no\nSearch for it"}
    row = {"error": error, "end_error": None, "capture_after": "invalidated"}
    assert not known.differs(row, row | {"error": error | {"message": "CUDA error: no"}})
    assert known.differs(row, row | {"error": error | {"code": 901}})
    assert known.differs(row, row | {"capture_after": "active"})
    assert not known.differs(row, None)


def test_the_driver_log_is_split_by_row_and_thread(tmp_path: Path) -> None:
    import threading

    log = tmp_path / "driver.log"
    log.write_text("[1][2][CUDA][E] earlier\n")
    before = log.stat().st_size
    own = threading.get_ident()
    with log.open("a") as out:
        out.write(f"[10:00][{own}][CUDA][E] Returning 900 from cuMemAlloc_v2\n")
        out.write("[10:00][77][CUDA][E] conflicts with a capture\n")
        out.write("[10:00][77][CUDA][E] Returning 201 from cuCtxGetDevice_v2\n")
    assert measure.driver_log(log, before) == {
        "driver": [
            ["own", "Returning 900 from cuMemAlloc_v2"],
            ["other", "conflicts with a capture"],
        ]
    }
