"""GPUs that break under a run: what they spoil is no evidence, what breaks them is."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, resume
from capdoctor.bisection.observation import Observation
from capdoctor.bisection.probes.probe import Place
from capdoctor.errors import CannotDo, Interrupted
from capdoctor.model import BisectAnswer, BisectResult
from tests.bisection.devices import Device, suspect
from tests.bisection.plain_line import Repo, request_for
from tests.bisection.stub_probe import (
    StubProbe,
    clean,
    crash,
    from_culprit,
    infra,
    work,
)

CULPRIT = 37


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


def finished(
    request: BisectRequest, probe: StubProbe, folder: Path, device: Device, pauses: int = 60
) -> tuple[BisectResult, int]:
    """Bisect to the end: at each pause somebody mends the machine. Also how often that was."""
    result: list[BisectResult] = []
    with suppress(CannotDo):
        result = [bisect(request, probe, work_dir=folder, device_check=device.check)]
    pause = 0
    while not result:
        pause, device.works = pause + 1, True
        assert pause < pauses
        with suppress(CannotDo):
            result = [resume(folder, probe, device_check=device.check)]
    return result[0], pause


def test_a_crash_that_breaks_the_device_every_time_is_found_without_a_reference(
    line: Repo, tmp_path: Path
) -> None:
    """Once may be chance, so the bad end is run again after the reset; then it is evidence."""
    shas, device = line[1], Device()

    def fate(sha: str, _run: int) -> Observation:
        if shas.index(sha) < CULPRIT:
            return clean()
        device.works = False
        return crash(sticky=True)

    probe = StubProbe(fate)
    result, pauses = finished(request_for(line), probe, work(tmp_path), device)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[CULPRIT],))
    assert pauses <= len(probe.ran)
    assert probe.ran.count(shas[-1]) == 2


@pytest.mark.parametrize("seed", range(12))
def test_a_machine_that_fails_at_random_never_changes_the_answer(
    line: Repo, tmp_path: Path, seed: int
) -> None:
    """Lost runs, GPUs that break under a run and give any error, faults that break nothing."""
    shas, device, chance = line[1], Device(), random.Random(seed)  # noqa: S311 - a machine, no secret
    culprit, workers = chance.randrange(1, len(shas)), 1 + seed % 2

    def fate(sha: str, _run: int) -> Observation:
        if device.works and chance.random() < 0.1:
            device.works = False
        if not device.works:
            return chance.choice([infra(), suspect(), crash("s1:lost", suspect=True)])
        if chance.random() < 0.05:
            return infra()
        return crash(sticky=chance.random() < 0.5) if shas.index(sha) >= culprit else clean()

    request = request_for(line, workers=workers, gpus=("0", "1")[:workers])
    result, _ = finished(request, StubProbe(fate), work(tmp_path), device)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[culprit],))
    assert result.signature == "s1:ours"


def test_a_fault_whose_device_nobody_asked_before_a_reset_is_no_evidence(
    line: Repo, tmp_path: Path
) -> None:
    """A GPU hangs, the machine with it; after the reset the GPU is fine and the commit also."""
    device, shas, folder = Device(), line[1], work(tmp_path)
    healthy = from_culprit(shas, CULPRIT)

    def killed(_place: Place) -> Observation:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        bisect(
            request_for(line),
            StubProbe(lambda *_: suspect()),
            work_dir=folder,
            device_check=killed,
        )
    probe = StubProbe(healthy)
    result = resume(folder, probe, device_check=device.check)
    assert (result.candidates, result.signature) == ((shas[CULPRIT],), "s1:ours")
    assert device.asked == [0]
    told = [run.reason for run in result.probes[:2]]
    assert told[0].startswith("not counted, its device passed no control after it")
    assert told[1] == "control: the bisection stopped before the device was asked"
