"""Stages by the clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.engines.clock import StageClock
from capdoctor.model import Stage, StageSpan
from tests.engines.support import Recorder
from tests.helpers.fake_engine import LINES

LOGS = sorted((Path(__file__).parents[1] / "data/engines").glob("*.log"))


def test_stages_get_the_seconds_at_which_they_began_and_ended() -> None:
    clock = StageClock(Recorder())
    clock.line("something else", 1.0)
    clock.line(LINES["config"], 2.0)
    clock.line(LINES["weights"], 5.0)
    assert clock.spans() == (
        StageSpan(Stage.IMPORT, 0.0, 2.0),
        StageSpan(Stage.CONFIG, 2.0, 5.0),
        StageSpan(Stage.WEIGHTS, 5.0, None),
    )
    assert clock.spans(ended_well_at=7.0)[-1] == StageSpan(Stage.WEIGHTS, 5.0, 7.0)


def test_a_shutdown_after_a_good_end_is_no_stage_of_the_start() -> None:
    clock = StageClock(Recorder())
    clock.line(LINES["serving"], 3.0)
    clock.line(
        "(MainProcess pid=1) INFO [utils.py:1] [shutdown] Process manager: send sigterm", 4.0
    )
    spans = clock.spans(ended_well_at=4.1)
    assert [span.name for span in spans] == [Stage.IMPORT, Stage.SERVING]
    assert spans[-1].end is not None


def test_a_listener_hears_each_stage_once() -> None:
    heard = Recorder()
    clock = StageClock(heard)
    for second in range(3):
        clock.line(LINES["config"], float(second))
    assert heard.stages == [Stage.IMPORT, Stage.CONFIG]


def test_a_crash_that_shuts_down_has_passed_nothing_more() -> None:
    clock = StageClock(Recorder())
    clock.line(LINES["weights"], 3.0)
    clock.line("(EngineCore pid=1) INFO [core.py:1] [shutdown] Executor: waiting for worker", 4.0)
    clock.line(
        "(MainProcess pid=1) INFO [utils.py:1] [shutdown] Process manager: send sigterm", 4.0
    )
    assert clock.current is Stage.WEIGHTS
    assert not clock.has_passed(Stage.WEIGHTS)
    assert not clock.has_passed(Stage.KV_CACHE)
    assert clock.has_passed(Stage.DEVICE_INIT)
    assert clock.spans()[-1] == StageSpan(Stage.WEIGHTS, 3.0, None)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_real_logs_pass_the_stages_that_they_passed(log: Path) -> None:
    """A stage that counts as passed too early would make a bisection call a crash good."""
    expected = json.loads(log.with_suffix(".expect.json").read_text())
    clock = StageClock(Recorder())
    for line in log.read_text().splitlines():
        clock.line(line, 0.0)
    wanted = Stage(expected.get("stage_by_lines", expected["stage"]))
    assert clock.current is wanted
    assert not clock.has_passed(wanted)


def test_the_runner_can_tell_that_the_imports_are_over() -> None:
    heard = Recorder()
    clock = StageClock(heard)
    clock.imported(2.0)
    clock.imported(3.0)
    clock.line(LINES["config"], 4.0)
    assert clock.has_passed(Stage.IMPORT)
    assert heard.stages == [Stage.IMPORT, Stage.CONFIG]
    clock.line(LINES["weights"], 5.0)
    clock.imported(6.0)
    assert clock.spans() == (
        StageSpan(Stage.IMPORT, 0.0, 2.0),
        StageSpan(Stage.CONFIG, 2.0, 5.0),
        StageSpan(Stage.WEIGHTS, 5.0, None),
    )
