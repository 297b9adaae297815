"""Which devices a bisection uses, and which of them are asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect
from capdoctor.bisection.campaign import Campaign
from capdoctor.bisection.device_control import device_check_for
from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.journal.journal import Journal
from capdoctor.bisection.journal.story import Begin, Run, Story
from capdoctor.bisection.observation import Observation
from capdoctor.bisection.probes.probe import Place
from capdoctor.bisection.probes.strays import MARK
from capdoctor.bisection.progress import Silent
from capdoctor.engines.gpus import memory
from capdoctor.engines.gpus.device_check import DeviceState
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import EngineSpec
from tests.bisection.devices import Device
from tests.bisection.plain_line import Repo, request_for
from tests.bisection.stub_probe import (
    StubProbe,
    clean,
    crash,
    from_culprit,
    work,
)

CULPRIT = 37
CUDA = EngineSpec("embedded", "m.py", device="cuda")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Make this a machine with a driver, and give what the device was asked."""
    monkeypatch.setattr(memory, "DRIVER_NODES", (tmp_path,))
    return []


def check_with(
    asked: list[tuple[str, int]], request: BisectRequest, place: Place
) -> Observation | None:
    def ask(env: Mapping[str, str], needed: int) -> DeviceState:
        asked.append((env.get("CUDA_VISIBLE_DEVICES", ""), needed))
        return DeviceState(works=True, why="fine", seconds=0.1)

    check = device_check_for(request, ask)
    return check(place) if check else None


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"engine": CUDA}, [("2,3", 1)]),
        ({"probe": "scenario:sparse-mla", "engine": CUDA}, [("2,3", 1)]),
        ({"probe": "pytest -x", "gpus": ("2,3",)}, [("2,3", 0)]),
        ({"probe": "pytest -x"}, []),
        ({"probe": "fix:sparse-mla", "gpus": ("2,3",)}, []),
        ({"probe": "scenario:sparse-mla", "engine": EngineSpec("embedded", "")}, []),
        ({"engine": EngineSpec("embedded", "m.py")}, []),
    ],
)
def test_what_uses_a_gpu_is_checked_on_its_own_gpus(
    asked: list[tuple[str, int]], more: dict[str, object], expected: list[tuple[str, int]]
) -> None:
    request = BisectRequest("r", "good", "bad", **more)  # type: ignore[arg-type]
    place = Place("0" * 40, None, Path(), Path(), devices="2,3")  # type: ignore[arg-type]
    check_with(asked, request, place)
    assert asked == expected


def test_a_machine_without_a_gpu_has_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", ())
    assert device_check_for(BisectRequest("r", "good", "bad", engine=CUDA)) is None
    assert device_check_for(BisectRequest("r", "good", "bad", "true", gpus=("0",))) is None


def test_a_check_belongs_to_its_bisection(asked: list[tuple[str, int]], tmp_path: Path) -> None:
    """It carries the mark: what a killed bisection has left asking a driver is ended by resume."""
    marks: list[str | None] = []

    def ask(env: Mapping[str, str], _needed: int) -> DeviceState:
        marks.append(env.get(MARK))
        return DeviceState(works=True, why="fine", seconds=0.1)

    check = device_check_for(BisectRequest("r", "good", "bad", engine=CUDA), ask)
    assert check is not None
    assert asked == []
    check(Place("0" * 40, None, Path(), tmp_path / "runs/1"))  # type: ignore[arg-type]
    assert marks == [str(tmp_path / "runs/1")]


def test_a_check_that_cannot_be_made_is_told_before_anything_is_written(
    line: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "DRIVER_NODES", (tmp_path,))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    engine = EngineSpec("vllm", "m", python=tmp_path / "no-such-python")
    with pytest.raises(CannotDo, match="no-such-python"):
        bisect(request_for(line, engine=engine), StubProbe(lambda *_: clean()))
    assert not list((tmp_path / "state").rglob("journal.jsonl"))


@pytest.mark.parametrize("worker", [0, 1])
def test_the_revert_check_is_preceded_by_a_look_at_its_own_device(
    line: Repo, tmp_path: Path, worker: int
) -> None:
    """It runs on the first worker: what the other one's device is like does not matter."""
    device = Device()
    mirror = open_mirror(line[0], tmp_path / "repository.git")
    begin = Begin(request_for(line, workers=2, gpus=("0", "1")), "", line[1][0], line[1][-1])
    faults = tuple(Run(line[1][-1], "search", crash(sticky=True), 1.0, who) for who in (worker, 1))
    campaign = Campaign(
        mirror,
        None,
        Story(begin, faults),
        Journal(tmp_path / "journal.jsonl"),
        tmp_path,
        StubProbe(lambda *_: clean()),
        Silent(),
        device.check,
    )
    campaign.run_once(line[1][40], "revert")
    assert device.asked == ([0] if worker == 0 else [])


@pytest.mark.parametrize(
    ("workers", "gpus"),
    [(3, ("0", "1")), (1, ("0", "1")), (2, ("0,1",)), (2, ("0", "1", "2"))],
)
def test_devices_that_do_not_go_round_are_refused(
    line: Repo, tmp_path: Path, workers: int, gpus: tuple[str, ...]
) -> None:
    probe = StubProbe(from_culprit(line[1], CULPRIT))
    request = request_for(line, workers=workers, gpus=gpus)
    with pytest.raises(UsageError, match=r"set\(s\) of GPUs"):
        bisect(request, probe, work_dir=work(tmp_path))
    assert probe.ran == []


@pytest.mark.parametrize(("workers", "gpus"), [(2, ()), (1, ("0,1",)), (2, ("0", "0"))])
def test_devices_that_go_round_are_taken(
    line: Repo, tmp_path: Path, workers: int, gpus: tuple[str, ...]
) -> None:
    probe = StubProbe(from_culprit(line[1], CULPRIT))
    result = bisect(request_for(line, workers=workers, gpus=gpus), probe, work_dir=work(tmp_path))
    assert result.candidates == (line[1][CULPRIT],)
    assert {place.devices for place in probe.places} <= set(gpus or (None,))
