"""Killed at every line of its journal, a bisection goes on to the same answer."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, resume
from capdoctor.bisection.journal.journal import Journal
from capdoctor.bisection.observation import Observation
from capdoctor.model import BisectAnswer, BisectResult, Json
from tests.bisection.stub_probe import Fate, StubProbe, clean, crash, from_culprit
from tests.helpers.git_repo import build_repository, linear

Repo = tuple[Path, tuple[str, ...]]
_CONTEXT = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    folder = tmp_path_factory.mktemp("kill") / "repo"
    return folder, build_repository(folder, linear(40))


def _reliable(shas: tuple[str, ...]) -> Fate:
    return from_culprit(shas, 22, {at: crash("s1:other") for at in range(17, 21)})


def _flaky(shas: tuple[str, ...]) -> Fate:
    """Crash in a pattern of its own at every commit: the n-th run of a commit is always alike."""
    number = {sha: at for at, sha in enumerate(shas)}

    def fate(sha: str, run: int) -> Observation:
        comes = (run * 7 + number[sha] * 3) % 5 < 3
        return crash() if number[sha] >= 22 and comes else clean()

    return fate


class _Remembering(StubProbe):
    """Counts the runs of the journal too: a commit's n-th run is its n-th ever."""

    def __init__(self, fate: Fate, work: Path) -> None:
        super().__init__(fate)
        journal = work / "journal.jsonl"
        events = Journal(journal).events() if journal.exists() else []
        runs = [event["run"] for event in events if event["event"] == "run"]
        self.ran = [str(run["sha"]) for run in runs if isinstance(run, dict)]


def _answer(result: BisectResult) -> tuple[object, ...]:
    return result.answer, result.candidates, result.runs, result.islands, result.reasons


def _request(line: Repo, *, flaky: bool) -> BisectRequest:
    return BisectRequest(str(line[0]), line[1][0], "main", flaky=flaky)


def _killed_after(count: int, request: BisectRequest, fate: Fate, work: Path) -> int | None:
    """Bisect in a process that kills itself right after its ``count``-th line; the exit code."""

    def run() -> None:
        real, written = Journal.append, [0]

        def append(self: Journal, event: Mapping[str, Json]) -> None:
            real(self, event)
            written[0] += 1
            if written[0] == count:
                os.kill(os.getpid(), signal.SIGKILL)

        Journal.append = append  # type: ignore[method-assign]
        if (work / "journal.jsonl").exists():
            resume(work, _Remembering(fate, work))
        else:
            bisect(request, StubProbe(fate), work_dir=work)

    child = _CONTEXT.Process(target=run)
    child.start()
    child.join(60)
    return child.exitcode


@pytest.mark.parametrize("flaky", [False, True])
def test_killed_at_every_line_it_comes_to_the_same_answer(
    line: Repo, tmp_path: Path, *, flaky: bool
) -> None:
    fate = (_flaky if flaky else _reliable)(line[1])
    request = _request(line, flaky=flaky)
    whole = bisect(request, StubProbe(fate), work_dir=tmp_path / "whole")
    assert (whole.answer, whole.candidates) == (BisectAnswer.CULPRIT, (line[1][22],))
    lines = len((tmp_path / "whole/journal.jsonl").read_bytes().splitlines())
    step = 11 if flaky else 1
    for count in range(1, lines, step):
        work = tmp_path / f"killed{count}"
        assert _killed_after(count, request, fate, work) == -signal.SIGKILL
        assert _answer(resume(work, _Remembering(fate, work))) == _answer(whole)


def test_killed_over_and_over_it_still_gets_there(line: Repo, tmp_path: Path) -> None:
    fate, request = _reliable(line[1]), _request(line, flaky=False)
    whole = bisect(request, StubProbe(fate), work_dir=tmp_path / "whole")
    work = tmp_path / "killed"
    codes = [_killed_after(3, request, fate, work) for _ in range(4)]
    assert codes == [-signal.SIGKILL] * 4
    assert _answer(resume(work, _Remembering(fate, work))) == _answer(whole)


def test_a_line_that_was_torn_is_run_again(line: Repo, tmp_path: Path) -> None:
    fate, request = _reliable(line[1]), _request(line, flaky=False)
    whole = bisect(request, StubProbe(fate), work_dir=tmp_path)
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for count in (2, 5, len(lines) - 1):
        torn = lines[count][: len(lines[count]) // 2]
        journal.write_bytes(b"".join(lines[:count]) + torn)
        assert _answer(resume(tmp_path, _Remembering(fate, tmp_path))) == _answer(whole)
