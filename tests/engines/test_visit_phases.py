from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.phases import Visit, do_phases


def visit_in(folder: Path) -> Visit:
    return Visit(folder / "out", folder / "work")


def broken(_: Visit) -> Any:
    raise ValueError("no such luck")


def test_a_phase_that_is_done_is_not_done_again_in_a_later_call(tmp_path: Path) -> None:
    calls: list[str] = []
    phases = {name: lambda _, name=name: calls.append(name) or name for name in ("a", "b")}
    assert do_phases(visit_in(tmp_path), phases, ["a"]) == 0
    assert do_phases(visit_in(tmp_path), phases, phases) == 0
    assert calls == ["a", "b"]
    assert json.loads((tmp_path / "out/results.json").read_text()) == {"a": "a", "b": "b"}


def test_a_phase_that_fails_says_so_and_the_next_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = {"bad": broken, "good": lambda _: 1}
    assert do_phases(visit_in(tmp_path), phases, phases) == 1
    assert "bad: failed: ValueError('no such luck')" in capsys.readouterr().out
    assert visit_in(tmp_path).results == {"good": 1}


def test_no_phase_begins_after_its_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    visit = visit_in(tmp_path)
    assert do_phases(visit, {"late": broken}, ["late"], until=time.monotonic() - 1) == 0
    assert "late: no time left" in capsys.readouterr().out
    assert visit.results == {}
