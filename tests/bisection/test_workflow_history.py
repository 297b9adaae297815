"""What the history itself does to an answer: merges, inert commits, moved pins, reverts."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection import BisectRequest, bisect, resume
from capdoctor.bisection.observation import Observation
from capdoctor.errors import CannotDo
from capdoctor.model import BisectAnswer
from tests.bisection.stub_probe import Fate, StubProbe, clean, crash, from_culprit
from tests.helpers.git_repo import Commit, build_repository, git, linear


def _merged() -> list[Commit]:
    """Main 0..3, a side of three commits from 1, merged at 7, two more commits."""
    change = [Commit({f"f{number}": "x"}, f"c{number}") for number in range(4)]
    side = [
        Commit({"s4": "x"}, "s4", (1,)),
        Commit({"s5": "x"}, "s5", (4,)),
        Commit({"s6": "x"}, "s6", (5,)),
    ]
    merge = Commit({"s4": "x", "s5": "x", "s6": "x"}, "Merge pull request #9 from a/b", (3, 6))
    return [*change, *side, merge, Commit({"f8": "x"}, "c8"), Commit({"f9": "x"}, "c9")]


def test_a_merge_is_the_answer_on_the_first_parent_line(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", _merged())
    crashing = {shas[at] for at in (5, 6, 7, 8, 9)}
    fate: Fate = lambda sha, _: crash() if sha in crashing else clean()  # noqa: E731
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main")
    result = bisect(request, StubProbe(fate), work_dir=tmp_path / "a")
    assert result.culprit is not None
    assert (result.culprit.sha, result.culprit.pr) == (shas[7], "#9")


@pytest.mark.parametrize("culprit", [5, 7])
def test_without_first_parent_the_search_goes_on_inside_the_merge(
    tmp_path: Path, culprit: int
) -> None:
    shas = build_repository(tmp_path / "repo", _merged())
    crashing = {shas[at] for at in (7, 8, 9)} | ({shas[5], shas[6]} if culprit == 5 else set())
    fate: Fate = lambda sha, _: crash() if sha in crashing else clean()  # noqa: E731
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", first_parent=False)
    result = bisect(request, StubProbe(fate), work_dir=tmp_path / "a")
    assert (result.answer, result.candidates) == (BisectAnswer.CULPRIT, (shas[culprit],))


VLLM = {"vllm/__init__.py": "", "requirements/cuda.txt": "torch==2.10.0\n"}


def _vllm_history() -> list[Commit]:
    """Half of the commits change nothing that ships; 20 moves torch, 33 changes Python."""
    commits = [Commit(VLLM, "begin")]
    for number in range(1, 48):
        files = {"docs/x.md": f"{number}"} if number % 2 else {"vllm/a.py": f"{number}"}
        if number == 20:
            files = {"requirements/cuda.txt": "torch==2.11.0\n"}
        commits.append(Commit(files, f"c{number} (#{number})"))
    return commits


def test_inert_commits_are_no_candidates_and_inherit_verdicts(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", _vllm_history())
    probe = StubProbe(from_culprit(shas, 34))
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", confirm=1)
    result = bisect(request, probe, work_dir=tmp_path / "w")
    assert result.candidates == (shas[34],)
    odd = {sha for at, sha in enumerate(shas) if at % 2}
    assert set(probe.ran) & odd == {shas[33], shas[47]}, "only the culprit's parent and the end"
    assert result.runs <= 2 + 5 + 1


def test_a_culprit_that_only_moves_a_pin_is_a_dependency(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", _vllm_history())
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main")
    result = bisect(request, StubProbe(from_culprit(shas, 20)), work_dir=tmp_path / "w")
    assert result.answer is BisectAnswer.DEPENDENCY
    assert "torch 2.10.0 -> 2.11.0" in " ".join(result.reasons)
    assert result.next
    assert "--good 2.10.0 --bad 2.11.0" in result.next[0]


def test_paths_decide_what_can_matter(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", _vllm_history())
    probe = StubProbe(from_culprit(shas, 20))
    request = BisectRequest(
        str(tmp_path / "repo"), shas[0], "main", paths=("requirements",), confirm=1
    )
    result = bisect(request, probe, work_dir=tmp_path / "w")
    assert result.candidates == (shas[20],)
    assert probe.ran[2:] == [shas[20], shas[19]], "both are run, like the ends or not"


@pytest.mark.parametrize("culprit", [17, 18, 19, 21, 22, 46])
def test_a_culprit_among_commits_that_seem_inert_is_found(tmp_path: Path, culprit: int) -> None:
    shas = build_repository(tmp_path / "repo", _vllm_history())
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", paths=("requirements",))
    result = bisect(request, StubProbe(from_culprit(shas, culprit)), work_dir=tmp_path / "w")
    assert result.candidates == (shas[culprit],)
    assert result.answer is BisectAnswer.CULPRIT_UNCONFIRMED
    assert any("each one counts" in reason for reason in result.reasons)


@pytest.mark.parametrize("path", ["nothere", "/elsewhere/x", "./docs/none", "vllm/*.cu"])
def test_paths_that_no_commit_touches_are_refused(tmp_path: Path, path: str) -> None:
    shas = build_repository(tmp_path / "repo", _vllm_history())
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", paths=(path,))
    with pytest.raises(CannotDo, match=r"touches|is not in"):
        bisect(request, StubProbe(from_culprit(shas, 20)), work_dir=tmp_path / "w")


@pytest.mark.parametrize("path", ["requirements/*.txt", "./requirements", "{top}/requirements"])
def test_paths_may_be_patterns_and_absolute(tmp_path: Path, path: str) -> None:
    shas = build_repository(tmp_path / "repo", _vllm_history())
    paths = (path.format(top=tmp_path / "repo"),)
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", paths=paths)
    result = bisect(request, StubProbe(from_culprit(shas, 20)), work_dir=tmp_path / "w")
    assert result.answer is BisectAnswer.DEPENDENCY
    assert result.candidates == (shas[20],)


def test_a_work_folder_may_be_named_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shas = build_repository(tmp_path / "repo", linear(8))
    monkeypatch.chdir(tmp_path)
    request = BisectRequest("repo", shas[0], "main", probe="! grep -q 'number = [5-7]' app.py")
    result = bisect(request, work_dir=Path("w"))
    assert result.candidates == (shas[5],)
    assert str(tmp_path / "w") in result.resume_command
    monkeypatch.chdir("/")
    assert resume(tmp_path / "w").candidates == (shas[5],)


def test_a_bisection_that_cannot_begin_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_repository(tmp_path / "repo", linear(3))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(CannotDo, match="no commit called"):
        bisect(BisectRequest(str(tmp_path / "repo"), "nothing", "main", probe="true"))
    assert not list((tmp_path / "state" / "capdoctor" / "bisect").iterdir())


def test_a_repository_of_sha256_objects_can_be_bisected(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for number in range(4):
        (repo / "app.py").write_text(f"number = {number}\n")
        git(repo, "add", "app.py")
        git(repo, *who, "commit", "--quiet", "-m", f"c{number} (#{number})")
    probe = "! grep -q 'number = [23]' app.py"
    request = BisectRequest(str(repo), "main~3", "main", probe=probe)
    found = bisect(request, work_dir=tmp_path / "w").culprit
    assert found is not None
    assert (found.title, found.pr) == ("c2 (#2)", "#2")


@pytest.mark.parametrize(("cures", "word"), [(True, "does not crash"), (False, "crashes still")])
def test_the_revert_check_tries_the_bad_end_without_the_culprit(
    tmp_path: Path, cures: bool, word: str
) -> None:
    commits = [Commit({f"f{number}": "x"}, f"c{number}") for number in range(8)]
    shas = build_repository(tmp_path / "repo", commits)
    known = from_culprit(shas, 5)

    def fate(sha: str, run: int) -> Observation:
        if sha in shas:
            return known(sha, run)
        return clean() if cures else crash()

    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", revert_check=True)
    result = bisect(request, StubProbe(fate), work_dir=tmp_path / "w")
    assert result.answer is BisectAnswer.CULPRIT
    assert word in " ".join(result.reasons)
    assert result.runs == 9
