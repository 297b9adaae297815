from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import has_torch
from tests.helpers.command_line import answer, assert_refused, capdoctor
from tests.helpers.git_repo import build_repository, git, linear

CULPRIT = 11
COUNT = 16
CRASH = (
    "EngineCore failed to start.\\nTraceback (most recent call last):\\n"
    '  File \\"/x/site-packages/vllm/v1/core.py\\", line 3, in start\\n    go()\\n'
    "ValueError: the table is empty\\n"
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("repo") / "r"
    build_repository(folder, linear(COUNT))
    shas = git(folder, "rev-list", "--reverse", "HEAD").split()
    return folder, shas


def probe_for(repository: tuple[Path, list[str]]) -> str:
    """A probe that is bad from the culprit on, judged by ancestry."""
    folder, shas = repository
    return (
        f"if git -C {folder} merge-base --is-ancestor {shas[CULPRIT]} $CAPDOCTOR_SHA;"
        f" then printf '{CRASH}'; exit 1; fi"
    )


def bisect(
    repository: tuple[Path, list[str]], work: Path, *more: str
) -> subprocess.CompletedProcess[str]:
    folder, shas = repository
    return capdoctor(
        *("bisect", "--repo", folder, "--good", shas[0], "--bad", shas[-1]),
        *("--probe", probe_for(repository), "--work-dir", work, *more),
    )


def test_the_culprit_is_found_and_confirmed(
    repository: tuple[Path, list[str]], tmp_path: Path
) -> None:
    done = bisect(repository, tmp_path / "w", "--json")
    found = answer(done)
    assert done.returncode == 1, done.stderr
    assert (found["schema"], found["answer"]) == ("capdoctor.bisect/1", "CULPRIT")
    assert found["culprit"]["sha"] == repository[1][CULPRIT]
    assert found["range_size"] == COUNT - 1
    assert found["runs"] == len(found["probes"])


def test_the_report_is_markdown_and_the_progress_goes_to_stderr(
    repository: tuple[Path, list[str]], tmp_path: Path
) -> None:
    done = bisect(repository, tmp_path / "w")
    assert done.stdout.startswith("## ")
    assert repository[1][CULPRIT] in done.stdout
    assert "candidates" in done.stderr


def test_status_log_undo_and_resume_speak_of_the_same_journal(
    repository: tuple[Path, list[str]], tmp_path: Path
) -> None:
    work = tmp_path / "w"
    first = answer(bisect(repository, work, "--json"))
    status = json.loads(capdoctor("bisect", "status", work, "--json").stdout)
    assert status["runs"] == first["runs"]
    assert "git bisect bad" in capdoctor("bisect", "log", work).stdout
    assert capdoctor("bisect", "undo", work).returncode == 0
    again = answer(capdoctor("bisect", "resume", work, "--json"))
    assert again["culprit"]["sha"] == first["culprit"]["sha"]


def test_the_users_repository_is_untouched(
    repository: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder = repository[0]
    before = git(folder, "for-each-ref"), git(folder, "status", "--porcelain")
    bisect(repository, tmp_path / "w")
    assert (git(folder, "for-each-ref"), git(folder, "status", "--porcelain")) == before
    assert not (folder / ".git/worktrees").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--repo", "."],
        ["--repo", ".", "--good", "a", "--bad", "b"],
        ["--repo", ".", "--good", "a", "--bad", "b", "--probe", "fix:no-such-fix"],
        ["--repo", ".", "--good", "a", "--bad", "b", "--model", "demo/clean", "--engine-arg", "x"],
        ["--workers", "0"],
    ],
)
def test_a_command_line_that_cannot_be_meant_is_exit_2(arguments: list[str]) -> None:
    assert_refused(capdoctor("bisect", *arguments), 2)


def test_what_cannot_be_started_is_exit_3(
    repository: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, shas = repository
    for good, bad in ((shas[-1], shas[0]), (shas[3], shas[3]), ("no-such-tag", shas[-1])):
        done = capdoctor(
            *("bisect", "--repo", folder, "--good", good, "--bad", bad),
            *("--probe", "true", "--work-dir", tmp_path / good[:4] / bad[:4]),
        )
        assert_refused(done, 3)


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--no-such-option"], 130), (["--model", "demo/none"], 130)]
)
def test_git_cannot_mistake_a_wrong_probe_for_a_bad_commit(
    arguments: list[str], code: int, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "capdoctor", "bisect", "probe", *arguments],
        cwd=tmp_path,
        capture_output=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode in (125, 128, code)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_what_runs_and_says_how_to_go_on(
    repository: tuple[Path, list[str]], tmp_path: Path, number: signal.Signals
) -> None:
    folder, shas = repository
    started = tmp_path / "started"
    probe = f"setsid sleep 300 & echo $! > {started}; sleep 300"
    line = ("bisect", "--repo", folder, "--good", shas[0], "--bad", shas[-1])
    process = subprocess.Popen(
        [sys.executable, "-m", "capdoctor", *line, "--probe", probe, "--work-dir", tmp_path / "w"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert out == ""
    assert f"capdoctor bisect resume {tmp_path / 'w'}" in said
    left = int(started.read_text())
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


MODEL = """import torch

class Model(torch.nn.Module):
    def forward(self, hidden):
        return hidden * SCALE

def build():
    return Model()

def inputs(batch):
    return (torch.ones(batch, 4, device="cuda"),)
"""


@pytest.mark.skipif(not has_torch(), reason="the embedded engine needs torch")
def test_git_bisect_run_finds_the_same_commit_with_our_probe(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    build_repository(folder, linear(7, path="notes.txt"))
    (folder / "model.py").write_text(MODEL.replace("SCALE", "2"))
    git(folder, "add", ".")
    commit(folder, "a model")
    good = git(folder, "rev-parse", "HEAD").strip()
    for number in range(6):
        if number == 3:
            (folder / "model.py").write_text(MODEL.replace("SCALE", "float(hidden.sum())"))
        (folder / "notes.txt").write_text(f"{number}\n")
        commit(folder, f"change {number}")
    git(folder, "bisect", "start", "HEAD", good)
    line = [sys.executable, "-m", "capdoctor", "bisect", "probe", "--model", "model.py"]
    told = git(folder, "bisect", "run", *line)
    first_bad = git(folder, "rev-parse", "refs/bisect/bad").strip()
    assert "first bad commit" in told
    assert git(folder, "log", "-1", "--format=%s", first_bad).strip() == "change 3"


def commit(folder: Path, title: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.invalid")
    git(folder, *identity, "commit", "-q", "-a", "-m", title)
