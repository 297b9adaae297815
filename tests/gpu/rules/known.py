"""What the tables of ``tests/data/capture`` already say, and whether an answer contradicts it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Key = tuple[str, str, str]
DATA = Path(__file__).resolve().parents[2] / "data" / "capture"
ERRORS = ("error", "thread_error", "end_error", "after_error")
_MEASURED_AS = {"rules": "first", "operations": "second"}


def table(name: str) -> list[Row]:
    """The head and the rows of a table."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def key(row: Mapping[str, Any]) -> Key:
    """What names a row: its set-up, its case and its error mode."""
    return row["setup"], row["case"], row.get("mode", "global")


def known(part: str) -> dict[Key, Row]:
    """All that was measured before, whatever the torch; the newest torch wins."""
    setup = _MEASURED_AS[part]
    rows = table("legality_h200.jsonl" if part == "rules" else "more_operations.jsonl")[1:]
    found = {key(row | {"setup": setup}): row for row in rows}
    if part == "rules":
        for path in sorted(DATA.glob("modes_torch-*.jsonl")):
            found |= {key(row): row for row in table(path.name)[1:]}
    return found


def differs(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    """Say whether a measured row contradicts another: errors, codes, state of the capture."""
    return before is not None and essence(row) != essence(before)


def essence(row: Mapping[str, Any]) -> list[Any]:
    """What two measurements of one row must agree in."""
    errors = [row.get(name) for name in ERRORS]
    short = [e and [e["type"], e["code"], e["message"].split("\n")[0][:60]] for e in errors]
    return [row.get("capture_after"), *short]


def usable(row: Mapping[str, Any]) -> bool:
    """Say whether the row was measured at all."""
    return not {"not_measured", "died", "harness_error", "before_error", "skipped"} & set(row)
