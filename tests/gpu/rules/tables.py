"""Turn what ``measure.py`` wrote into the tables under ``tests/data/capture``.

    python tests/gpu/rules/tables.py MEASURED --device "NVIDIA H200" --date 2026-11-29

Writes ``modes_torch-X.Y.jsonl`` (everything of the part ``rules``) and, where the second table was
measured with another torch, ``more_operations_torch-X.Y.jsonl``: the rows that this torch answers
otherwise. Messages are cut to their first line, at most 240 characters, as in the other tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.gpu.rules import known, measure  # noqa: E402 - after the path is set

Row = dict[str, Any]
_CODE = ("before", "code", "thread", "after", "register")
_DRIVER_LINES = 4
_FIELDS = (
    "before: run eagerly first; code: run inside a capture; thread: then run in another thread"
    " while the capture is on; after: run after capture_end; mode: capture_error_mode; an error"
    " that is not there was not raised; driver: what the driver wrote down, in the capturing (own)"
    " or in another thread; messages: first line, at most 240 characters"
)


def tidy(row: Row) -> Row:
    """A measured row as the tables hold it."""
    dropped = (*known.ERRORS, "alone", "driver", "in_company")
    kept = {k: v for k, v in row.items() if k not in dropped}
    for name in known.ERRORS:
        if row.get(name) is not None:
            kept[name] = row[name] | {"message": row[name]["message"].split("\n")[0][:240]}
    said = [line for line in row.get("driver", ()) if not any(n in line[1] for n in measure.NOISE)]
    return kept | ({"driver": said[:_DRIVER_LINES]} if said else {})


def ordered(rows: list[Row], asked: list[Row]) -> list[Row]:
    """Measured rows in the order in which they were asked for."""
    order = {known.key(row): n for n, row in enumerate(asked)}
    return sorted(filter(known.usable, rows), key=lambda row: order[known.key(row)])


def modes_table(measured: list[Row]) -> list[Row]:
    """The table of the part ``rules``, without rows that are asked otherwise today."""
    asked = measure.rule_rows()[0]
    today = {known.key(row): row for row in asked}
    rows = [row for row in measured if known.key(row) in today]
    same = [row for row in rows if all(row.get(n) == today[known.key(row)].get(n) for n in _CODE)]
    return [tidy(row | today[known.key(row)]) for row in ordered(same, asked)]


def operations_table(measured: list[Row]) -> list[Row]:
    """The rows that this torch answers otherwise than the second table says."""
    before = known.known("operations")
    rows = ordered(measured, measure.operation_rows()[0])
    return [tidy(row) for row in rows if known.differs(row, before[known.key(row)])]


def account(told: str, rows: list[Row]) -> Row:
    """What the head of a table says about how it was measured, and what could not be."""
    alone = sum(row.get("alone", True) for row in rows)
    how = (
        f"{len(rows)} rows, {alone} of them in a fresh process of their own, the others one after"
        " the other, each of which agrees with what a fresh process gave before"
    )
    failed = [row["case"] for row in rows if not known.usable(row)]
    return {"measured": f"{told}; {how} (tests/gpu/rules/measure.py)", "not_measured": failed}


def _read(path: Path) -> tuple[Row, list[Row]]:
    head, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return head, rows


def _write(path: Path, head: Row, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]), "utf-8")
    print(f"{path.name}: {len(rows)} rows")


def main() -> int:
    """Write the tables of one visit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--date", required=True)
    chosen = parser.parse_args()
    head, rows = _read(chosen.measured / "rules.jsonl")
    told = f"torch {head['torch']}, {chosen.device}; {chosen.date}"
    release = ".".join(head["torch"].split(".")[:2])
    modes = {"setups": head["setups"], "fields": _FIELDS} | account(told, rows)
    _write(known.DATA / f"modes_torch-{release}.jsonl", modes, modes_table(rows))
    if f"torch {release}" in known.table("more_operations.jsonl")[0]["measured"]:
        return 0
    _, rows = _read(chosen.measured / "operations.jsonl")
    differing = {"against": "more_operations.jsonl"} | account(told, rows)
    _write(known.DATA / f"more_operations_torch-{release}.jsonl", differing, operations_table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
