"""Whole bisections over real repositories, with a probe that knows each commit's fate."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, replay_log, resume, status, undo
from capdoctor.bisection.observation import Observation
from capdoctor.errors import CannotDo
from capdoctor.model import BisectAnswer, ProbeVerdict
from tests.bisection.plain_line import Repo, request_for
from tests.bisection.stub_probe import (
    StubProbe,
    clean,
    crash,
    from_culprit,
    unbuildable,
    work,
)
from tests.helpers.git_repo import build_repository, git, linear


def test_a_culprit_is_found_confirmed_and_named(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    probe = StubProbe(from_culprit(shas, 37))
    result = bisect(request_for(line), probe, work_dir=work(tmp_path))
    assert result.answer is BisectAnswer.CULPRIT
    assert result.culprit is not None
    assert (result.culprit.sha, result.culprit.pr) == (shas[37], "#1037")
    assert result.candidates == (shas[37],)
    assert (result.range_size, result.runs) == (63, 12)
    assert result.signature == "s1:ours"
    assert probe.ran.count(shas[37]) == 3
    assert probe.ran.count(shas[36]) == 3


def test_other_crashes_and_broken_commits_never_vote(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    others = {at: crash("s1:other") for at in range(28, 35)}
    others |= {at: unbuildable() for at in range(40, 44)}
    result = bisect(request_for(line), StubProbe(from_culprit(shas, 50, others)), work_dir=tmp_path)
    assert result.answer is BisectAnswer.CULPRIT
    assert result.candidates == (shas[50],)
    verdicts = {probe.verdict for probe in result.probes}
    assert ProbeVerdict.OTHER in verdicts
    assert all(island.length <= 7 for island in result.islands)


def test_a_culprit_inside_an_island_is_an_honest_range(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    others = {at: crash("s1:other") for at in range(28, 35)}
    result = bisect(request_for(line), StubProbe(from_culprit(shas, 31, others)), work_dir=tmp_path)
    assert result.answer is BisectAnswer.RANGE
    assert result.culprit is None
    assert result.candidates == shas[28:36]
    assert "cannot be judged" in " ".join(result.reasons)


def test_the_good_end_that_crashes_alike_points_at_the_environment(
    line: Repo, tmp_path: Path
) -> None:
    result = bisect(request_for(line), StubProbe(lambda *_: crash()), work_dir=tmp_path)
    assert result.answer is BisectAnswer.OUTSIDE_RANGE
    assert "environment" in " ".join(result.reasons)
    assert result.candidates == ()


def test_a_bad_end_that_does_not_crash_has_no_culprit(line: Repo, tmp_path: Path) -> None:
    result = bisect(request_for(line), StubProbe(lambda *_: clean()), work_dir=tmp_path)
    assert result.answer is BisectAnswer.NO_CULPRIT
    assert "did not crash in 5 runs" in " ".join(result.reasons)


def test_a_bad_end_that_crashes_otherwise_has_no_culprit(line: Repo, tmp_path: Path) -> None:
    reference = Path(__file__).parent.parent / "data/bisection/reference.log"
    fate = from_culprit(line[1], 10, {63: crash("s1:another")})
    request = request_for(line, reference=reference)
    result = bisect(request, StubProbe(fate), work_dir=tmp_path / "w")
    assert result.answer is BisectAnswer.NO_CULPRIT
    assert "crashes otherwise" in " ".join(result.reasons)


@pytest.mark.parametrize("end", [0, 63])
def test_an_end_that_cannot_be_judged_stops_it(line: Repo, tmp_path: Path, end: int) -> None:
    fate = from_culprit(line[1], 20, {end: unbuildable("no wheel for it")})
    with pytest.raises(CannotDo, match="no wheel for it") as caught:
        bisect(request_for(line), StubProbe(fate), work_dir=tmp_path)
    assert "resume" in caught.value.hint


def test_find_fix_names_the_commit_that_fixed_it(line: Repo, tmp_path: Path) -> None:
    repo, shas = line
    number = {sha: at for at, sha in enumerate(shas)}
    probe = StubProbe(lambda sha, _: clean() if number[sha] >= 23 else crash())
    request = BisectRequest(str(repo), good="main", bad="v0.1.0", find_fix=True)
    result = bisect(request, probe, work_dir=tmp_path)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[23],))
    assert probe.ran[:2] == [shas[0], shas[63]]


def test_ends_given_the_wrong_way_round_are_said(line: Repo, tmp_path: Path) -> None:
    request = BisectRequest(str(line[0]), good="main", bad="v0.1.0")
    with pytest.raises(CannotDo, match="swapped"):
        bisect(request, StubProbe(lambda *_: clean()), work_dir=tmp_path)


def test_a_flaky_crash_is_measured_and_still_found(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    number = {sha: at for at, sha in enumerate(shas)}
    tosses = {3: (0, 1, 1, 0, 1, 0, 0, 1), 5: (1, 0, 1, 1, 0)}

    def fate(sha: str, run: int) -> Observation:
        pattern = tosses[3 if number[sha] % 2 else 5]
        comes = pattern[(run + number[sha]) % len(pattern)]
        return crash() if number[sha] >= 41 and comes else clean()

    result = bisect(request_for(line, flaky=True), StubProbe(fate), work_dir=tmp_path)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[41],))
    assert "flaky" in " ".join(result.reasons)
    assert result.confidence >= 0.999


def test_a_budget_ends_it_with_what_is_known(line: Repo, tmp_path: Path) -> None:
    fate = from_culprit(line[1], 37)
    result = bisect(request_for(line, budget=0.0), StubProbe(fate), work_dir=tmp_path)
    assert result.answer is BisectAnswer.RANGE
    assert "time" in " ".join(result.reasons)
    assert result.resume_command is not None


def test_undo_takes_a_wrong_verdict_back(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    right = from_culprit(shas, 37)
    wrong = from_culprit(shas, 37, {31: crash()})
    first = bisect(request_for(line), StubProbe(wrong), work_dir=work(tmp_path))
    assert first.candidates != (shas[37],)
    assert undo(work(tmp_path), shas[31][:10])
    second = resume(work(tmp_path), StubProbe(right))
    assert second.candidates == (shas[37],)
    with pytest.raises(CannotDo, match="names none"):
        undo(work(tmp_path), "0000")


def test_several_workers_find_the_same(line: Repo, tmp_path: Path) -> None:
    shas = line[1]
    probe = StubProbe(from_culprit(shas, 37, {30: unbuildable()}))
    request = request_for(line, workers=3, gpus=("0", "1", "2"))
    result = bisect(request, probe, work_dir=tmp_path)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[37],))
    assert {place.devices for place in probe.places} == {"0", "1", "2"}
    assert len({place.out for place in probe.places}) == len(probe.places)


def test_a_verdict_cancels_runs_that_it_makes_useless(line: Repo, tmp_path: Path) -> None:
    """With three workers a crash at the first divider makes the later two useless."""
    shas = line[1]
    probe = StubProbe(from_culprit(shas, 5), slow=frozenset(shas[20:60]))
    result = bisect(request_for(line, workers=3), probe, work_dir=tmp_path)
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[5],))
    assert probe.cancelled


def test_an_error_of_one_worker_ends_all_and_is_told(line: Repo, tmp_path: Path) -> None:
    def fate(sha: str, _run: int) -> Observation:
        if sha == line[1][63]:
            return crash()
        if sha == line[1][0]:
            return clean()
        raise CannotDo("no disk for a worktree", "free some")

    with pytest.raises(CannotDo, match="no disk for a worktree") as caught:
        bisect(request_for(line, workers=2), StubProbe(fate), work_dir=tmp_path)
    assert "resume" in caught.value.hint


def test_status_and_log(line: Repo, tmp_path: Path) -> None:
    repo, shas = line
    fate = from_culprit(shas, 37, {31: unbuildable()})
    result = bisect(request_for(line), StubProbe(fate), work_dir=work(tmp_path))
    told = status(work(tmp_path))
    assert (told.work_dir, told.begin.newer, told.runs) == (work(tmp_path), shas[63], result.runs)
    assert told.last is not None
    assert told.last.sha in (shas[36], shas[37])
    replay = tmp_path / "replay"
    replay.write_text(replay_log(work(tmp_path)))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repo), str(clone))
    said = git(clone, "bisect", "replay", str(replay))
    assert f"{shas[37]} is the first bad commit" in said


def test_the_log_of_a_search_for_a_fix_replays_too(line: Repo, tmp_path: Path) -> None:
    repo, shas = line
    number = {sha: at for at, sha in enumerate(shas)}
    request = BisectRequest(str(repo), good="main", bad="v0.1.0", find_fix=True)
    probe = StubProbe(lambda sha, _: clean() if number[sha] >= 23 else crash())
    bisect(request, probe, work_dir=work(tmp_path))
    replay = tmp_path / "replay"
    replay.write_text(replay_log(work(tmp_path)))
    git(tmp_path, "clone", "--quiet", str(repo), "clone")
    said = git(tmp_path / "clone", "bisect", "replay", str(replay))
    assert f"{shas[23]} is the first fixed commit" in said


def test_the_users_repository_is_as_it_was(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    shas = build_repository(repo, linear(16))
    (repo / "app.py").write_text("dirty\n")
    before = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    request = BisectRequest(str(repo), shas[0], "main", revert_check=True)
    result = bisect(request, StubProbe(from_culprit(shas, 9)), work_dir=work(tmp_path))
    assert result.candidates == (shas[9],)
    assert {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()} == before


def test_a_revert_that_conflicts_is_said(line: Repo, tmp_path: Path) -> None:
    fate = from_culprit(line[1], 37)
    result = bisect(request_for(line, revert_check=True), StubProbe(fate), work_dir=tmp_path)
    assert "cannot be reverted" in " ".join(result.reasons)


def test_two_bisections_do_not_share_a_folder(line: Repo, tmp_path: Path) -> None:
    bisect(request_for(line), StubProbe(from_culprit(line[1], 3)), work_dir=tmp_path)
    with pytest.raises(CannotDo, match="holds a bisection already"):
        bisect(request_for(line), StubProbe(from_culprit(line[1], 3)), work_dir=tmp_path)
