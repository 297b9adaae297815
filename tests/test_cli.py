from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
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


def shell(line: str, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    words = f"{sys.executable} -m capdoctor"
    return subprocess.run(
        ["bash", "-c", line.replace("CAPDOCTOR", words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), **env},
        timeout=120,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("verb", "code"), [("--help", 0), ("repro --list-demos", 0), ("repro --model demo/none", 2)]
)
def test_a_stream_that_the_caller_closed_changes_no_exit_code(
    closed: str, verb: str, code: int, tmp_path: Path
) -> None:
    done = shell(f"CAPDOCTOR {verb} {closed}", tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "state/capdoctor/faults").exists()


@pytest.mark.parametrize("verb", ["--help", "repro --list-demos", "repro --list-demos --json"])
def test_a_reader_that_goes_away_is_no_trouble_found(verb: str, tmp_path: Path) -> None:
    # The reader is gone before anything is written.
    done = shell(f"(sleep 0.3; CAPDOCTOR {verb}; echo $? >&2) | true", tmp_path)
    assert done.stderr == f"{cli.BROKEN_PIPE}\n"


@pytest.mark.parametrize("verb", ["repro --list-demos", "repro --list-demos --json"])
def test_a_full_disk_under_stdout_is_exit_3_and_one_sentence(verb: str, tmp_path: Path) -> None:
    done = shell(f"CAPDOCTOR {verb} >/dev/full", tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("capdoctor: the answer cannot be written: No space left")
    assert done.stderr.count("\n") == 2


def test_nothing_to_complain_to_is_no_reason_to_fail(tmp_path: Path) -> None:
    assert shell("CAPDOCTOR repro --model demo/none 2>/dev/full", tmp_path).returncode == 2


def test_a_character_that_the_locale_lacks_is_written_out(tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    log = tmp_path / "\u00e9.log"
    log.write_text("ValueError: \u00e9\n", encoding="utf-8")
    done = shell(f"CAPDOCTOR classify '{log}' '{tmp_path}/\u00ea.log'", tmp_path, **env)
    assert (done.returncode, done.stdout) == (3, "")
    assert ".log cannot be read" in done.stderr
    assert done.stderr.isascii()
    assert not (tmp_path / "state/capdoctor/faults").exists()


def test_an_interrupt_before_a_command_took_over_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", raiser(SystemExit(130)))
    monkeypatch.setattr(sys, "argv", ["capdoctor", "repro", "--model", "a b"])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    assert leaving.value.code == 130
    assert capsys.readouterr().err.endswith("hint: capdoctor repro --model 'a b'\n")


_TWICE = """
import os, signal, sys, time
from capdoctor import cli
from capdoctor.errors import Interrupted

def app(**_):
    try:
        exec("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)")
    except KeyboardInterrupt:
        raise Interrupted("stopped", "again")

def show(*_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(9)

cli.app = app
if sys.argv[1] == "twice":
    cli._show = show
cli.main()
"""


@pytest.mark.parametrize("how", ["once", "twice"])
def test_interrupts_in_an_exec_and_during_the_farewell_leave_with_130(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TWICE, how], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)
