"""A command of the user's: exit codes as in git bisect run, its output diagnosed."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from capdoctor.bisection import BisectRequest, bisect
from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.observation import Saw
from capdoctor.bisection.probes.command import CommandProbe
from capdoctor.bisection.probes.probe import Cancelled, Place
from capdoctor.errors import CannotDo
from capdoctor.model import BisectAnswer
from tests.helpers.git_repo import Commit, build_repository, linear

Made = tuple[Mirror, tuple[str, ...]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("command")
    shas = build_repository(folder / "repo", linear(3))
    return open_mirror(folder / "repo", folder / "m"), shas


def _place(made: Made, tmp_path: Path, **more: str) -> Place:
    return Place(made[1][1], made[0], tmp_path / "trees", tmp_path / "out", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "saw"),
    [
        ("true", Saw.CLEAN),
        ("exit 1", Saw.CRASH),
        ("exit 127", Saw.CRASH),
        ("exit 125", Saw.UNBUILDABLE),
        ("exit 128", Saw.INFRA),
        ("exit 255", Saw.INFRA),
        ("kill -9 $$", Saw.INFRA),
    ],
)
def test_exit_codes(made: Made, tmp_path: Path, command: str, saw: Saw) -> None:
    seen = CommandProbe(command).run(_place(made, tmp_path))
    assert seen.saw is saw
    assert seen.stop is (saw is Saw.INFRA)


def test_it_runs_in_the_commits_own_worktree(made: Made, tmp_path: Path) -> None:
    command = (
        'test "$(cat app.py)" = "number = 1" && test "$CAPDOCTOR_SHA" = "$(git rev-parse HEAD)"'
    )
    assert CommandProbe(command).run(_place(made, tmp_path)).saw is Saw.CLEAN


def test_a_worker_sees_its_own_devices(made: Made, tmp_path: Path) -> None:
    command = 'test "$CUDA_VISIBLE_DEVICES$HIP_VISIBLE_DEVICES" = "3,43,4"'
    assert CommandProbe(command).run(_place(made, tmp_path, devices="3,4")).saw is Saw.CLEAN


def test_a_timeout_hangs_and_leaves_no_process(made: Made, tmp_path: Path) -> None:
    command = "sleep 300 & echo $! > $TMP_PID; sleep 300"
    pid_file = tmp_path / "pid"
    os.environ["TMP_PID"] = str(pid_file)
    try:
        seen = CommandProbe(command, timeout=0.5).run(_place(made, tmp_path))
    finally:
        del os.environ["TMP_PID"]
    assert seen.saw is Saw.HANG
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def _signature(made: Made, tmp_path: Path, command: str) -> str | None:
    return CommandProbe(command).run(_place(made, tmp_path)).signature


RAISE = "python3 -c '\ndef inner():\n    raise {}\ninner()'"


def test_the_same_plain_traceback_has_one_signature(made: Made, tmp_path: Path) -> None:
    first = _signature(made, tmp_path, RAISE.format('ValueError("size 3")'))
    assert first is not None
    assert first == _signature(made, tmp_path, RAISE.format('ValueError("size 44")'))
    assert first != _signature(made, tmp_path, RAISE.format('KeyError("size 3")'))


def test_without_a_traceback_exit_code_and_last_line_tell_failures_apart(
    made: Made, tmp_path: Path
) -> None:
    one = _signature(made, tmp_path, "echo '2 failed in 0.31s'; exit 1")
    assert one is not None
    assert one == _signature(made, tmp_path, "echo '2 failed in 9.99s'; exit 1")
    assert one != _signature(made, tmp_path, "echo '2 failed in 0.31s'; exit 2")
    assert one != _signature(made, tmp_path, "echo 'no such file'; exit 1")
    assert _signature(made, tmp_path, "exit 1") == _signature(made, tmp_path, "exit 1")


def _number(commands: dict[range, str]) -> str:
    cases = " ".join(
        f"{'|'.join(map(str, numbers))}) {command};;" for numbers, command in commands.items()
    )
    return f"case $(sed 's/number = //' app.py) in {cases} esac"


OTHER = "python3 -c 'raise KeyError(1)'"
OURS = "python3 -c 'raise ValueError(1)'"


@pytest.mark.parametrize(("any_failure", "culprit"), [(False, 20), (True, 12)])
def test_another_failure_counts_only_if_asked_for(
    tmp_path: Path, any_failure: bool, culprit: int
) -> None:
    shas = build_repository(tmp_path / "repo", linear(32))
    command = _number({range(12, 18): OTHER, range(20, 32): OURS})
    request = BisectRequest(
        str(tmp_path / "repo"), shas[0], "main", command, any_failure=any_failure, confirm=1
    )
    result = bisect(request, work_dir=tmp_path / "w")
    expected = {shas[culprit]}
    if any_failure:
        # The good commits between the two failures show, when met, as a second transition.
        expected = {shas[12], shas[20]}
    assert result.answer is BisectAnswer.CULPRIT
    assert set(result.candidates) <= expected


def test_a_command_that_stops_pauses_the_bisection(tmp_path: Path) -> None:
    shas = build_repository(tmp_path / "repo", [Commit({"a": "1"}), Commit({"a": "2"})])
    request = BisectRequest(str(tmp_path / "repo"), shas[0], "main", "exit 200")
    with pytest.raises(CannotDo, match="asked to stop"):
        bisect(request, work_dir=tmp_path / "w")


def test_a_run_whose_verdict_is_of_no_use_is_ended(made: Made, tmp_path: Path) -> None:
    place = _place(made, tmp_path)
    timer = threading.Timer(0.3, place.cancelled.set)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(Cancelled):
        CommandProbe("sleep 60").run(place)
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("name", ["LC_ALL", "GIT_LFS_SKIP_SMUDGE", "GIT_OPTIONAL_LOCKS"])
def test_a_command_has_the_users_own_settings(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "mine")
    place = _place(made, tmp_path)
    assert CommandProbe(f'test "${name}" = mine').run(place).saw is Saw.CLEAN
    monkeypatch.delenv(name)
    assert CommandProbe(f'test -z "${{{name}+set}}"').run(place).saw is Saw.CLEAN


@pytest.mark.parametrize("signal_name", ["SEGV", "ABRT", "KILL"])
def test_a_command_that_a_signal_ends_is_told_from_one_that_asks_to_stop(
    made: Made, tmp_path: Path, signal_name: str
) -> None:
    seen = CommandProbe(f"kill -{signal_name} $$").run(_place(made, tmp_path))
    assert f"SIG{signal_name}" in seen.reason
    assert "|| exit 1" in seen.reason
    assert "asked to stop" in CommandProbe("exit 255").run(_place(made, tmp_path)).reason


def test_a_child_with_a_session_of_its_own_is_ended_too(made: Made, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    child = f"setsid sh -c 'echo $$ > {pid_file}; exec sleep 300' &"
    command = f"{child} while ! test -s {pid_file}; do sleep 0.02; done"
    assert CommandProbe(command).run(_place(made, tmp_path)).saw is Saw.CLEAN
    assert not _runs(int(pid_file.read_text()))
