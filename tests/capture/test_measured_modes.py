"""The virtual device against a GPU under each release of torch and each error mode, row by row."""

from __future__ import annotations

import re

import pytest

from capdoctor.capture.error_modes import Mode
from capdoctor.capture.torch_version import parse_release
from tests.capture.cases import DATA, Row, read_table, run_row, same_error

ERRORS = ("error", "thread_error", "end_error", "after_error")


def _release(name: str) -> str:
    found = re.search(r"torch-(\d+\.\d+)", name)
    assert found is not None
    return found[1]


TABLES = {_release(path.name): read_table(path.name) for path in DATA.glob("modes_torch-*.jsonl")}
ROWS = [
    pytest.param(row, release, id=f"{release}-{row.get('mode', 'global')}-{row['case']}")
    for release, (_head, rows) in sorted(TABLES.items())
    for row in rows
    if row.get("python_level", True)
    and parse_release(release) >= parse_release(row.get("since", "2.0"))
]


@pytest.mark.parametrize(("row", "release"), ROWS)
def test_each_mode_and_release_is_followed(row: Row, release: str) -> None:
    setup = TABLES[release][0]["setups"][row["setup"]]
    got = run_row(row, setup, as_torch=release)
    for name in ERRORS:
        assert same_error(row.get(name), got.get(name)), (name, row.get(name), got.get(name))
    assert got["capture_after"] == row["capture_after"]


def test_the_tables_hold_all_modes() -> None:
    assert "2.11" in TABLES
    for _head, rows in TABLES.values():
        for setup in ("first", "cases"):
            names = {row["case"] for row in rows if row["setup"] == setup and "mode" in row}
            for mode in Mode:
                assert mode.value in {row.get("mode") for row in rows if row["case"] in names}
