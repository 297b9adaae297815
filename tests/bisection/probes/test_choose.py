"""Which probe is meant."""

from __future__ import annotations

import pytest

from capdoctor.bisection import BisectRequest
from capdoctor.bisection.probes.choose import probe_for
from capdoctor.bisection.probes.command import CommandProbe
from capdoctor.bisection.probes.engine import EngineProbe
from capdoctor.bisection.probes.fix import FixProbe
from capdoctor.bisection.probes.scenario import ScenarioProbe
from capdoctor.errors import UsageError
from capdoctor.model import EngineSpec

SPEC = EngineSpec("embedded", "model.py", device="cuda", as_torch=None)


def _probe(text: str, spec: EngineSpec | None = None) -> object:
    return probe_for(BisectRequest("r", "a", "b", text, spec))


def test_the_kinds() -> None:
    assert isinstance(_probe("engine", SPEC), EngineProbe)
    assert isinstance(_probe("fix:sparse-mla"), FixProbe)
    assert isinstance(_probe("scenario:sparse-mla"), ScenarioProbe)
    assert isinstance(_probe("pytest -x tests"), CommandProbe)


def test_a_command_may_look_like_a_kind() -> None:
    assert isinstance(_probe("fix: this && make"), CommandProbe)
    assert isinstance(_probe("engine --check"), CommandProbe)


def test_a_scenario_runs_on_the_device_that_was_asked_for() -> None:
    probe = _probe("scenario:fold-indptr", SPEC)
    assert isinstance(probe, ScenarioProbe)
    assert probe.device == "cuda"


@pytest.mark.parametrize("text", ["engine", "scenario:nope", "fix:nope", "   "])
def test_what_cannot_be_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        _probe(text)
