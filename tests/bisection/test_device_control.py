"""A device that a fault may have left broken: asked first, by a known-good program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, replay_log, resume
from capdoctor.bisection.device_control import device_check_for, observed
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.probe import Place
from capdoctor.engines.gpus import memory
from capdoctor.engines.gpus.device_check import DeviceState
from capdoctor.errors import CannotDo
from capdoctor.model import BisectAnswer, EngineSpec, ProbeVerdict
from tests.bisection.plain_line import Repo, request_for
from tests.bisection.stub_probe import (
    StubProbe,
    clean,
    crash,
    from_culprit,
    unbuildable,
    work,
)

CULPRIT = 37


@dataclass
class Device:
    """A device that works or does not; ``asked`` records which worker was asked about it."""

    works: bool = True
    asked: list[int] = field(default_factory=list)

    def check(self, place: Place) -> Observation:
        self.asked.append(place.worker)
        why = "a known-good program runs" if self.works else "GPU 0 (H200): cuInit gave 999 (999)"
        return observed(DeviceState(self.works, why, 0.9))


def suspect(saw: Saw = Saw.HANG, **more: object) -> Observation:
    options: dict[str, object] = {"title": "it hung", "suspect": True, "seconds": 1.0, **more}
    return Observation(saw, **options)  # type: ignore[arg-type]


def test_a_bisection_without_faults_never_asks_the_device(line: Repo, tmp_path: Path) -> None:
    device, shas = Device(), line[1]
    others = {31: unbuildable(), 45: crash("s1:other")}
    probe = StubProbe(from_culprit(shas, CULPRIT, others))
    result = bisect(request_for(line), probe, work_dir=work(tmp_path), device_check=device.check)
    assert result.candidates == (shas[CULPRIT],)
    assert device.asked == []


def test_after_each_fault_the_device_is_asked_before_the_next_run(
    line: Repo, tmp_path: Path
) -> None:
    device, shas = Device(), line[1]
    number = {sha: at for at, sha in enumerate(shas)}
    order: list[str] = []

    def fate(sha: str, _run: int) -> Observation:
        assert not (order and order[-1] == "fault"), "a run right after a fault"
        order.append("fault" if number[sha] >= CULPRIT else "clean")
        return crash(sticky=True) if number[sha] >= CULPRIT else clean()

    def check(place: Place) -> Observation:
        order.append("asked")
        return device.check(place)

    probe = StubProbe(fate)
    result = bisect(request_for(line), probe, work_dir=work(tmp_path), device_check=check)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[CULPRIT],))
    assert order.count("asked") in (order.count("fault"), order.count("fault") - 1)
    assert probe.ran.count(shas[0]) < order.count("fault"), "the known-good end was the control"
    assert result.runs == len(probe.ran)
    assert result.engine_starts == 0  # a look at the device is none
    assert [run.verdict for run in result.probes if run.reason.startswith("control")] == [
        ProbeVerdict.GOOD
    ] * len(device.asked)


def test_a_broken_device_pauses_the_bisection_at_once_and_resume_asks_it_first(
    line: Repo, tmp_path: Path
) -> None:
    device, shas = Device(works=False), line[1]
    number = {sha: at for at, sha in enumerate(shas)}
    wedged = {"yes": True}

    def fate(sha: str, _run: int) -> Observation:
        if wedged["yes"]:
            return suspect()
        return crash() if number[sha] >= CULPRIT else clean()

    probe, folder = StubProbe(fate), work(tmp_path)
    with pytest.raises(CannotDo, match=r"paused: after a fault the device fails by itself \(GPU 0"):
        bisect(request_for(line), probe, work_dir=folder, device_check=device.check)
    assert len(probe.ran) == 1
    with pytest.raises(CannotDo, match="GPU 0") as caught:
        resume(folder, probe, device_check=device.check)
    assert caught.value.hint == (
        f"free that GPU, or have it reset; then: capdoctor bisect resume {folder}"
    )
    assert (len(probe.ran), len(device.asked)) == (1, 2)
    wedged["yes"], device.works = False, True
    result = resume(folder, probe, device_check=device.check)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[CULPRIT],))
    assert result.islands == ()
    doubted = [run for run in result.probes if "the device was broken after it" in run.reason]
    assert [run.verdict for run in doubted] == [ProbeVerdict.HANG]


def test_a_crash_of_a_device_in_trouble_does_not_become_the_one_looked_for(
    line: Repo, tmp_path: Path
) -> None:
    """Without a reference the first crash at the bad end counts: not if its device was broken."""
    device, shas = Device(works=False), line[1]
    healthy = from_culprit(shas, CULPRIT)
    probe = StubProbe(lambda _sha, _run: crash("s1:out-of-memory", suspect=True))
    folder = work(tmp_path)
    with pytest.raises(CannotDo, match="paused"):
        bisect(request_for(line), probe, work_dir=folder, device_check=device.check)
    device.works, probe.fate = True, healthy
    result = resume(folder, probe, device_check=device.check)
    assert (result.candidates, result.signature) == ((shas[CULPRIT],), "s1:ours")


def test_the_very_crash_counts_even_if_it_breaks_the_device(line: Repo, tmp_path: Path) -> None:
    """A crash that wedges its GPU every time is found all the same, one reset after another."""
    shas, device = line[1], Device()
    number = {sha: at for at, sha in enumerate(shas)}

    def fate(sha: str, _run: int) -> Observation:
        if number[sha] < CULPRIT:
            return clean()
        device.works = sha == shas[-1]
        return crash(sticky=True)

    probe, folder, pauses = StubProbe(fate), work(tmp_path), 0
    try:
        result = bisect(request_for(line), probe, work_dir=folder, device_check=device.check)
    except CannotDo:
        while True:
            pauses, device.works = pauses + 1, True  # somebody resets the GPU
            try:
                result = resume(folder, probe, device_check=device.check)
                break
            except CannotDo:
                assert pauses < 40
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[CULPRIT],))
    assert pauses > 0


def test_a_machine_that_fails_three_times_pauses_though_its_device_works(
    line: Repo, tmp_path: Path
) -> None:
    """Controls in between do not hide that the same commit cannot be run."""
    device = Device()
    probe = StubProbe(
        lambda *_: crash(None, crash_class="gpu_memory_busy", suspect=True)  # type: ignore[arg-type]
    )
    with pytest.raises(CannotDo, match="paused"):
        bisect(request_for(line), probe, work_dir=work(tmp_path), device_check=device.check)
    assert len(probe.ran) == 3


def test_looks_at_a_device_are_not_replayed_to_git(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    probe = StubProbe(
        lambda sha, _run: crash(sticky=True) if shas.index(sha) >= CULPRIT else clean()
    )
    folder = work(tmp_path)
    bisect(request_for(line), probe, work_dir=folder, device_check=Device().check)
    controls = [
        event["run"]["sha"]
        for event in map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
        if event["event"] == "run" and event["run"]["purpose"] == "control"
    ]
    assert controls
    judged = [text for text in replay_log(folder).splitlines() if text.startswith("git bisect bad")]
    assert shas[CULPRIT] in " ".join(judged)


def test_each_worker_answers_for_its_own_device(line: Repo, tmp_path: Path) -> None:
    device, shas = Device(), line[1]

    def fate(sha: str, _run: int) -> Observation:
        return crash(sticky=True) if shas.index(sha) >= CULPRIT else clean()

    request = request_for(line, workers=2, gpus=("0", "1"))
    result = bisect(request, StubProbe(fate), work_dir=work(tmp_path), device_check=device.check)
    assert result.candidates == (shas[CULPRIT],)
    assert set(device.asked) <= {0, 1}
    assert device.asked


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


CUDA = EngineSpec("embedded", "m.py", device="cuda")


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
