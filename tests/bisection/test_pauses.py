"""The machine fails, or the user stops it: nothing is lost, and nothing counts against a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import bisect, resume
from capdoctor.bisection.observation import Observation
from capdoctor.errors import CannotDo, Interrupted
from capdoctor.model import BisectAnswer
from tests.bisection.plain_line import Repo, request_for
from tests.bisection.stub_probe import StubProbe, clean, crash, from_culprit, infra, work


def test_infra_is_tried_again_then_pauses_and_nothing_is_lost(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    healthy = from_culprit(shas, 37)
    broken = {"yes": True}

    def fate(sha: str, run: int) -> Observation:
        return infra() if sha == shas[31] and broken["yes"] else healthy(sha, run)

    probe = StubProbe(fate)
    with pytest.raises(CannotDo, match="paused: GPU 0 is lost") as caught:
        bisect(request_for(line), probe, work_dir=work(tmp_path))
    assert f"capdoctor bisect resume {work(tmp_path)}" in caught.value.hint
    assert probe.ran.count(shas[31]) == 3
    broken["yes"] = False
    result = resume(work(tmp_path), probe)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[37],))
    assert probe.ran.count(shas[63]) == 1


def test_a_probe_that_asks_to_stop_stops_at_once(line: Repo, tmp_path: Path) -> None:
    probe = StubProbe(lambda *_: infra("exit 130", stop=True))
    with pytest.raises(CannotDo, match="exit 130"):
        bisect(request_for(line), probe, work_dir=tmp_path)
    assert len(probe.ran) == 1


def test_a_device_left_broken_by_a_fault_casts_no_votes(line: Repo, tmp_path: Path) -> None:
    """After a fault everything crashes alike until the device is reset."""
    shas = line[1]
    number = {sha: at for at, sha in enumerate(shas)}
    wedged = {"at": -1, "calls": 0}

    def fate(sha: str, _run: int) -> Observation:
        wedged["calls"] += 1
        if wedged["at"] >= 0:
            return crash()
        if number[sha] >= 37 and sha != shas[63]:
            wedged["at"] = wedged["calls"]
            return crash(sticky=True)
        return crash() if number[sha] >= 37 else clean()

    probe = StubProbe(fate)
    with pytest.raises(CannotDo, match="known-good end fails too"):
        bisect(request_for(line), probe, work_dir=work(tmp_path))
    wedged["at"] = -1
    while True:
        try:
            result = resume(work(tmp_path), probe)
        except CannotDo:
            wedged["at"] = -1  # somebody resets the GPU
        else:
            break
    assert result.candidates == (shas[37],)


def test_ctrl_c_says_how_to_resume(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    healthy = from_culprit(shas, 37)
    pressed = {"times": 0}

    def fate(sha: str, run: int) -> Observation:
        if sha == shas[47] and not pressed["times"]:
            pressed["times"] += 1
            raise KeyboardInterrupt
        return healthy(sha, run)

    with pytest.raises(Interrupted) as caught:
        bisect(request_for(line), StubProbe(fate), work_dir=work(tmp_path))
    assert "capdoctor bisect resume" in caught.value.hint
    result = resume(work(tmp_path), StubProbe(fate))
    assert result.candidates == (shas[37],)
    assert result.runs == 12


def test_no_disk_for_a_worktree_is_a_sentence_and_can_be_resumed(
    line: Repo, tmp_path: Path
) -> None:
    folder = work(tmp_path)
    folder.mkdir()
    (folder / "worktrees").write_text("in the way")
    request = request_for(line, probe="grep -q 'number = [0-3]$' app.py")
    with pytest.raises(CannotDo, match="cannot be written") as caught:
        bisect(request, work_dir=folder)
    assert f"resume {folder}" in caught.value.hint
    (folder / "worktrees").unlink()
    assert resume(folder).candidates == (line[1][4],)


def test_a_work_folder_that_is_a_file_is_a_sentence(line: Repo, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CannotDo, match="cannot be written"):
        bisect(request_for(line), StubProbe(lambda *_: clean()), work_dir=tmp_path / "file")
