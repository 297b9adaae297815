"""Findings as text and SARIF; candidates apart from them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from capdoctor.model import (
    Candidate,
    CheckResult,
    Covered,
    Finding,
    Frame,
    StaticResult,
    WouldRaise,
)
from capdoctor.report.findings import check_card, check_sarif, static_card

SCHEMA = Path(__file__).resolve().parents[1] / "data" / "report" / "sarif-schema-2.1.0.json"
HOSTILE = "evil\x1b[31m[red]\n<b>&\ud800"


def finding(**changes: object) -> Finding:
    known: dict[str, object] = {
        "rule": "host_read",
        "file": "pkg/ops.py",
        "line": 7,
        "function": "norm",
        "operation": "item",
        "message": "item: CUDA error",
        "would_raise": WouldRaise("AcceleratorError", 900, "CUDA error: not permitted\nmore"),
        "invalidates": True,
        "stack": (Frame("m.py", 1, "captured"), Frame("pkg/ops.py", 7, "norm")),
        "legal_way": "keep it on the device",
    }
    return Finding(**(known | changes))  # type: ignore[arg-type]


def candidate(certainty: str = "likely", **changes: object) -> Candidate:
    known: dict[str, object] = {
        "rule": "host-read",
        "file": "ops.py",
        "line": 3,
        "function": "f",
        "operation": "x.item()",
        "certainty": certainty,
        "message": "reads back",
        "why": "by annotation",
        "legal_way": "do not",
    }
    return Candidate(**(known | changes))  # type: ignore[arg-type]


def text(lines: tuple[object, ...]) -> str:
    return "\n".join(f"{line.label}|{line.text}" for line in lines)  # type: ignore[attr-defined]


def test_a_finding_says_where_what_and_what_instead() -> None:
    shown = text(check_card([CheckResult("m.py", (finding(),), Covered(9, ("kernel k",)))]))
    assert "|1 operation illegal in a capture: m.py" in shown
    assert "at|pkg/ops.py:7 in norm: item" in shown
    assert "would raise|AcceleratorError: CUDA error: not permitted (900)" in shown
    assert "called from|m.py:1 in captured" in shown
    assert "instead|keep it on the device" in shown
    assert "not seen|kernel k" in shown


def test_no_finding_is_said_too() -> None:
    shown = text(check_card([CheckResult("m.py", (), Covered(9))]))
    assert shown.startswith("|legal in a capture: m.py")
    assert "9 operations" in shown


def test_candidates_say_that_nothing_was_run() -> None:
    likely, weak = candidate(), candidate("weak", line=9)
    shown = text(static_card(StaticResult("src", (likely, weak), 4, 5, ("a.py: no",)), [likely]))
    assert "1 candidate in 4 files of src; read, not run: nothing here is proven" in shown
    assert "likely|ops.py:3 in f: x.item()" in shown
    assert ":9" not in shown
    assert "1 weaker candidates" in shown
    assert "not read|a.py: no" in shown


@pytest.mark.parametrize("hostile", [False, True])
def test_sarif_is_valid_and_keeps_proof_and_suspicion_apart(hostile: bool) -> None:
    given = {"file": HOSTILE, "function": HOSTILE, "operation": HOSTILE} if hostile else {}
    log = check_sarif(
        [CheckResult("m.py", (finding(**given), finding(rule="rng_seed", line=0)), Covered(1))],
        [candidate(**given), candidate("possible"), candidate("weak")],
    )
    answer = json.loads(log)
    jsonschema.validate(answer, json.loads(SCHEMA.read_text()))
    results = answer["runs"][0]["results"]
    assert [r["level"] for r in results] == ["error", "error", "warning", "note", "none"]
    assert [r["properties"]["proven"] for r in results] == [True, True, False, False, False]
    rules = answer["runs"][0]["tool"]["driver"]["rules"]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in results)
    assert "\x1b" not in log


def test_hostile_text_stays_on_its_line() -> None:
    shown = text(check_card([CheckResult(HOSTILE, (finding(operation=HOSTILE),), Covered(1))]))
    assert "\x1b" not in shown
    assert "\nevil" not in shown
