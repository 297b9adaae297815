"""A device that a fault may have left broken: asked first, by a known-good program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.bisection import bisect, replay_log, resume, undo
from capdoctor.bisection.observation import Observation
from capdoctor.bisection.probes.probe import Place
from capdoctor.errors import CannotDo
from capdoctor.model import BisectAnswer, ProbeVerdict
from tests.bisection.devices import Device, suspect
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
    doubted = [
        run for run in result.probes if "its device passed no control after it" in run.reason
    ]
    assert [run.verdict for run in doubted] == [ProbeVerdict.HANG]


def test_undo_names_the_verdict_and_not_the_control(line: Repo, tmp_path: Path) -> None:
    device, shas = Device(works=False), line[1]
    folder = work(tmp_path)
    with pytest.raises(CannotDo, match="paused"):
        bisect(
            request_for(line),
            StubProbe(lambda *_: crash(sticky=True)),
            work_dir=folder,
            device_check=device.check,
        )
    assert undo(folder) == (shas[-1],)
    with pytest.raises(CannotDo, match="no verdict to take back"):
        undo(folder)


def test_an_end_that_cannot_be_judged_is_told_with_its_own_reason(
    line: Repo, tmp_path: Path
) -> None:
    """And not with that of a device that failed a control on the way."""
    shas, device = line[1], Device()

    def fate(sha: str, run: int) -> Observation:
        if sha == shas[0]:
            device.works = run > 1
            return unbuildable("other native sources") if run > 1 else suspect()
        return crash(sticky=True)

    with pytest.raises(CannotDo, match="paused"):
        bisect(
            request_for(line), StubProbe(fate), work_dir=work(tmp_path), device_check=device.check
        )
    device.works = True
    probe = StubProbe(fate, ran=[shas[0]])
    with pytest.raises(CannotDo, match=r"the good end .* cannot be judged: other native sources"):
        resume(work(tmp_path), probe, device_check=device.check)


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
