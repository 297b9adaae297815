from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor import cli
from capdoctor.errors import CannotDo, CapdoctorError, Interrupted, UsageError


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "capdoctor", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
        timeout=60,
    )


def test_help_lists_every_verb_and_imports_none_of_their_modules() -> None:
    code = (
        "import sys; sys.argv = ['capdoctor', '--help']\n"
        "from capdoctor.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = [m for m in sys.modules if m.startswith('capdoctor.commands.')\n"
        "         or m.split('.')[0] in ('torch', 'vllm', 'git', 'libcst', 'rich', 'psutil')]\n"
        "print('IMPORTED', heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "IMPORTED []" in done.stdout
    for verb in cli.VERBS:
        assert verb in done.stdout


def test_every_verb_of_the_table_can_be_loaded() -> None:
    for verb in cli.VERBS:
        done = run(verb, "--help")
        assert done.returncode == 0, done.stderr
        assert "Usage: capdoctor " + verb in done.stdout


@pytest.mark.parametrize("arguments", [["no-such-verb"], ["--no-such-option"], ["classify"]])
def test_a_wrong_command_line_is_exit_2_with_an_empty_stdout(arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error" in done.stderr


def test_a_near_miss_is_offered() -> None:
    assert "classify" in run("clasify").stderr


def test_version_is_shown() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "capdoctor")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("a contradicts b", "drop a"), 2),
        (CannotDo("no such log", "look again"), 3),
        (Interrupted("stopped", "capdoctor repro --model x"), 130),
    ],
)
def test_a_known_error_is_one_sentence_one_hint_and_its_code(
    error: CapdoctorError,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "app", raiser(error))
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    shown = capsys.readouterr()
    assert leaving.value.code == code
    assert shown.out == ""
    assert shown.err == f"capdoctor: {error.sentence}\nhint: {error.hint}\n"


def test_a_fault_of_our_own_is_exit_4_with_a_report_that_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", raiser(ZeroDivisionError("boom")))
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    shown = capsys.readouterr()
    assert (leaving.value.code, shown.out) == (4, "")
    path = Path(shown.err.rsplit("with ", 1)[1].strip())
    assert "ZeroDivisionError: boom" in path.read_text()
    assert "Traceback" not in shown.err


def test_an_error_text_with_escapes_cannot_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", raiser(CannotDo("bad \x1b]0;title\x07 name", "")))
    with pytest.raises(SystemExit):
        cli.main()
    assert "\x1b" not in capsys.readouterr().err


def raiser(error: BaseException) -> object:
    def app(**_: object) -> None:
        raise error

    return app
