"""Every log with an answer beside it gets that answer."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose
from capdoctor.diagnosis.tables import table
from capdoctor.model import Diagnosis
from tests.diagnosis.expected import (
    Expected,
    all_text,
    expected_logs,
    frame_is,
    is_startup_crash,
)

LOGS = expected_logs()
EACH = pytest.mark.parametrize("expected", LOGS, ids=lambda one: one.name)
# A clean start or a stop by hand is no known crash, though a report tells of it.
NO_CRASH = {"clean_startup", "user_interrupt"}


@cache
def answer_to(log: Path) -> Diagnosis:
    return diagnose(log)


@EACH
def test_class(expected: Expected) -> None:
    assert answer_to(expected.log).crash_class == expected.answer["class"]


@EACH
def test_stage(expected: Expected) -> None:
    assert answer_to(expected.log).stage in expected.accepted("stage")


@EACH
def test_error_type(expected: Expected) -> None:
    error = answer_to(expected.log).error
    assert (error.type if error else None) in expected.accepted("error_type")


@EACH
def test_root_frame(expected: Expected) -> None:
    frame = answer_to(expected.log).root_frame
    assert any(frame_is(frame, wanted) for wanted in expected.accepted("root_frame")), frame


@EACH
def test_component(expected: Expected) -> None:
    diagnosis = answer_to(expected.log)
    if diagnosis.crash_class == "clean_startup":
        assert diagnosis.component is None  # the taxonomy says so, whatever the file says
        return
    assert diagnosis.component in expected.accepted("component")


@EACH
def test_startup_flag(expected: Expected) -> None:
    assert is_startup_crash(answer_to(expected.log)) == expected.answer["is_startup_crash"]


@pytest.mark.parametrize(
    "expected",
    [one for one in LOGS if "known_issue" in one.answer and one.answer["class"] not in NO_CRASH],
    ids=lambda one: one.name,
)
def test_known_issue(expected: Expected) -> None:
    known = answer_to(expected.log).known_issue
    assert (known.url if known else None) == expected.answer["known_issue"]


@pytest.mark.parametrize(
    "expected", [one for one in LOGS if one.answer.get("error_line")], ids=lambda one: one.name
)
def test_error_line_is_quoted(expected: Expected) -> None:
    line = expected.answer["error_line"]
    assert line in all_text(answer_to(expected.log))


@EACH
def test_evidence_points_at_lines_of_the_file(expected: Expected) -> None:
    lines = expected.log.read_bytes().split(b"\n")
    for item in answer_to(expected.log).evidence:
        assert 1 <= item.line <= len(lines)


def test_no_confident_answer_is_wrong() -> None:
    wrong = [
        one.name
        for one in LOGS
        if answer_to(one.log).crash_class != one.answer["class"]
        and answer_to(one.log).confidence in {"confirmed", "likely"}
    ]
    assert wrong == []


def test_every_class_has_two_logs_of_our_own() -> None:
    own = Counter(one.answer["class"] for one in LOGS if "diagnosis" in one.name.split("/")[0])
    lacking = {name: own[name] for name in table("classes")["classes"] if own[name] < 2}
    assert lacking == {}
