"""A child that is asked: it answers, fails, or never comes back."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from capdoctor.engines.gpus import asking
from capdoctor.engines.gpus.asking import NoAnswer, ask
from tests.engines.support import wait_until


def python(code: str, seconds: float = 10.0) -> object:
    return ask([sys.executable, "-I", "-S", "-c", code], os.environ, seconds, ["works"])


def test_what_the_child_prints_is_the_answer() -> None:
    assert python("print('{\"works\": true}')") == {"works": True}


@pytest.mark.parametrize(
    "around",
    ["{answer}\n[E] a driver's last words", "[E] no context\n{answer}", "[1]\n{answer}\n7\n{{}}"],
)
def test_what_others_print_beside_the_answer_is_passed_over(around: str) -> None:
    printed = around.format(answer='{"works": true}')
    assert python(f"print({printed!r})") == {"works": True}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit(3)", "it ended with exit 3"),
        ("import sys; sys.exit('no such driver')", "it ended with exit 1: no such driver"),
        ("import os; os.kill(os.getpid(), 11)", "it ended with signal 11"),
        ("print('[1]')", "its answer cannot be read"),
        ("print('{\"works\": tr')", "its answer cannot be read"),
        ("import os; os.write(1, bytes([255, 123, 10]))", "its answer cannot be read"),
    ],
)
def test_a_child_without_an_answer_says_how_it_ended(code: str, why: str) -> None:
    assert python(code) == NoAnswer(why)


def test_a_program_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    found = ask([str(tmp_path / "absent")], os.environ, 5, ["works"])
    assert found == NoAnswer(f"{tmp_path / 'absent'} cannot be started: No such file or directory")


def test_a_child_that_never_answers_is_killed_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import os, time; pid = os.fork()\n"
        f"open({str(note)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "time.sleep(600)"
    )
    begin = time.monotonic()
    assert python(code, 1.0) == NoAnswer("no answer within 1 s", stuck=True)
    assert time.monotonic() - begin < 5
    pids = [int(word) for word in note.read_text().split()]
    assert len(pids) == 2
    assert wait_until(lambda: not any(_lives(pid) for pid in pids))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# Python warns of a child that nobody waited for, which is the point here.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_child_that_cannot_be_killed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process stuck in the kernel takes no signal: one whose signals get lost looks the same."""
    killed: list[int] = []
    monkeypatch.setattr(asking, "_KILL_SECONDS", 0.2)
    monkeypatch.setattr(asking.os, "killpg", lambda pid, _number: killed.append(pid))
    found = python("import time; time.sleep(1.5)", 0.5)
    assert isinstance(found, NoAnswer)
    assert found.immortal
    assert found.why.endswith(f"process {killed[0]} is stuck in the driver")
    os.waitpid(killed[0], 0)
