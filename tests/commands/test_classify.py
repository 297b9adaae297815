from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import pytest

from tests.helpers.command_line import answer, assert_refused, capdoctor

CORPUS = Path(__file__).parent.parent / "data/corpus"
SPARSE = CORPUS / "real-vllm030-h200-sparse-mla.log"
CLEAN = CORPUS / "real-vllm030-h200-clean-piecewise.log"
FOLD = CORPUS / "aiter-5202-fold-seqlen-indptr.log"
NOBODY = 65534


def test_a_crash_is_exit_1_and_the_json_of_the_contract() -> None:
    done = capdoctor("classify", SPARSE, "--json")
    found = answer(done)
    assert done.returncode == 1
    assert found["schema"] == "capdoctor.diagnosis/1"
    assert found["class"] == "capture_event_outside_graph"
    assert found["stage"] == "profile_cudagraph_memory"
    assert found["error"]["code"] == 1
    assert found["fix"] == "sparse-mla"
    text = SPARSE.read_bytes().decode().split("\n")
    for evidence in found["evidence"]:
        assert evidence["text"].strip() in text[evidence["line"] - 1]


def test_a_clean_log_is_exit_0() -> None:
    done = capdoctor("classify", CLEAN)
    assert done.returncode == 0
    assert done.stdout.startswith("CLEAN START")


def test_the_card_is_one_screen_without_an_escape() -> None:
    done = capdoctor("classify", SPARSE)
    assert "\x1b" not in done.stdout
    assert done.stdout.count("\n") <= 24
    assert "index_group.py:140 in _convert_once" in done.stdout


@pytest.mark.parametrize("form", ["md", "sarif"])
def test_other_forms_are_written(form: str) -> None:
    done = capdoctor("classify", SPARSE, "--format", form)
    assert done.returncode == 1
    assert "capture_event_outside_graph" in done.stdout


def test_json_and_another_form_contradict_each_other() -> None:
    assert_refused(capdoctor("classify", SPARSE, "--json", "--format", "md"), 2)


def test_standard_input_is_read() -> None:
    found = answer(capdoctor("classify", "-", "--json", stdin=SPARSE.read_bytes()))
    assert found["class"] == "capture_event_outside_graph"


def test_two_logs_of_one_crash_are_said_to_be_alike(tmp_path: Path) -> None:
    packed = tmp_path / "again.log.gz"
    packed.write_bytes(gzip.compress(SPARSE.read_bytes().replace(b"\r\n", b"\n")))
    found = answer(capdoctor("classify", SPARSE, packed, FOLD, "--json"))
    assert found["schema"] == "capdoctor.diagnoses/1"
    assert found["comparison"] is None
    assert [len(group["names"]) for group in found["groups"]] == [2, 1]


def test_a_pair_is_compared() -> None:
    same = answer(capdoctor("classify", SPARSE, SPARSE.parent / "." / SPARSE.name, "--json"))
    assert same.get("comparison") is None or same["comparison"]["sameness"] == "same"
    done = capdoctor("classify", SPARSE, FOLD)
    assert "different: one is capture_event_outside_graph" in done.stdout


def test_an_archive_is_taken_apart(tmp_path: Path) -> None:
    path = tmp_path / "ticket.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(SPARSE, "pod/a.log")
        archive.write(FOLD, "pod/b.log")
    found = answer(capdoctor("classify", path, "--json"))
    names = [log["log"] for log in found["logs"]]
    assert names == [f"{path}/pod/a.log", f"{path}/pod/b.log"]


def test_a_text_of_something_else_is_said_to_be_no_engine_log(tmp_path: Path) -> None:
    path = tmp_path / "diary.txt"
    path.write_text("Dear diary,\nnothing crashed today.\n")
    done = capdoctor("classify", path, "--json")
    assert done.returncode == 1
    assert answer(done)["verdict"] == "not_an_engine_log"
    assert "hint:" in done.stderr


def missing(folder: Path) -> Path:
    return folder / "no-such.log"


def empty(folder: Path) -> Path:
    path = folder / "empty.log"
    path.touch()
    return path


def binary(folder: Path) -> Path:
    path = folder / "core.bin"
    path.write_bytes(bytes(range(256)) * 64)
    return path


def damaged(folder: Path) -> Path:
    path = folder / "half.log.gz"
    path.write_bytes(gzip.compress(SPARSE.read_bytes())[:500])
    return path


def hollow(folder: Path) -> Path:
    path = folder / "logs"
    path.mkdir()
    return path


@pytest.mark.parametrize("make", [missing, empty, binary, hollow])
def test_a_log_that_cannot_be_read_is_a_sentence_and_a_hint(make: object, tmp_path: Path) -> None:
    assert_refused(capdoctor("classify", make(tmp_path), "--json"), 3)  # type: ignore[operator]


def test_a_damaged_archive_is_no_fault_of_ours(tmp_path: Path) -> None:
    done = capdoctor("classify", damaged(tmp_path))
    assert done.returncode in (1, 3)
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user")
def test_a_log_without_permission_is_a_sentence_and_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "secret.log"
    path.write_bytes(SPARSE.read_bytes())
    path.chmod(0)
    code = (
        # The other user may not be able to read our modules either: run once before the switch.
        "import os, sys; from capdoctor import cli\n"
        "sys.argv = ['capdoctor', 'classify', sys.argv[1]]\n"
        "sys.stdout = open(os.devnull, 'w')\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "import capdoctor.report.safe_text, capdoctor.report.fault\n"
        f"sys.stdout = sys.__stdout__; os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "cli.main()"
    )
    import subprocess
    import sys

    tmp_path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert_refused(done, 3)


def test_escapes_of_a_hostile_log_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "hostile.log"
    text = SPARSE.read_bytes().replace(
        b"CUDA error: invalid argument", b"CUDA error: invalid argument \x1b]0;pwned\x07 [bold]"
    )
    path.write_bytes(text)
    for form in ("text", "md", "json", "sarif"):
        done = capdoctor("classify", path, "--format", form)
        assert "\x1b" not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_a_broken_rule_of_the_users_is_skipped_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("this is not toml")
    done = capdoctor("classify", SPARSE, "--rules", tmp_path)
    assert done.returncode == 1
    assert "mine.toml" in done.stderr
