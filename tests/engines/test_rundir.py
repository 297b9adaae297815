"""The folder of a run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from capdoctor.engines.rundir import RunFolder, run_folder, write_json, write_text, writing
from capdoctor.errors import CannotDo, UsageError


def test_only_what_is_there_and_holds_something_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.log.write_text("x")
    folder.driver_log.write_text("")
    assert folder.artifacts() == {"folder": str(tmp_path), "log": str(folder.log)}


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ("/models/My Model", "-My-Model-"),
        ("lab/m-7b", "-m-7b-"),
        ("demo/x.py", "-x.py-"),
        ("..", "-"),
    ],
)
def test_default_folders_tell_the_model_and_never_collide(model: str, part: str) -> None:
    with run_folder(None, model) as first, run_folder(None, model) as second:
        one, other = first.root, second.root
    assert part in one.name
    assert one != other
    assert one.parent == Path(os.environ["XDG_STATE_HOME"]) / "capdoctor/runs"


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.json"
    write_json(target, {"old": 1})

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(CannotDo, match="the disk is full"):
        write_json(target, {"new": 2})
    assert target.read_bytes() == b'{\n  "old": 1\n}\n'
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EFBIG, "the file-size limit"),
        (errno.EACCES, "no permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_each_fault_of_a_disk_is_a_sentence_with_a_hint(number: int, words: str) -> None:
    with pytest.raises(CannotDo, match=words) as caught, writing(Path("/x")):
        raise OSError(number, os.strerror(number))
    assert caught.value.hint


def test_text_that_is_not_unicode_can_be_written(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "\udcff")
    assert (tmp_path / "a").read_bytes() == b"\xff"


@pytest.mark.parametrize(
    "name",
    [
        *("engine.log", "spec.json", "embedded.json", "outcome.json", "environment.json"),
        *("driver.log", "driver.log-2025", "runner.json", "overlay.json", "scenario.json"),
    ],
)
def test_a_file_of_the_users_is_never_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(CannotDo, match=name) as caught, run_folder(tmp_path, "model"):
        pass
    assert caught.value.hint
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


@pytest.mark.parametrize("name", ["caches", "overlay"])
def test_a_folder_of_the_users_is_never_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name / "deep").mkdir(parents=True)
    with pytest.raises(CannotDo, match=name), run_folder(tmp_path, "model"):
        pass
    assert (tmp_path / name / "deep").is_dir()


def test_other_files_of_the_users_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with run_folder(tmp_path, "model"):
        pass
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_an_earlier_run_left_goes(tmp_path: Path) -> None:
    with run_folder(tmp_path, "model") as folder:
        for path in (folder.log, folder.driver_log, tmp_path / "embedded.json"):
            path.write_text("old")
        (folder.overlay / "deep").mkdir(parents=True)
        (tmp_path / "target").mkdir()
        folder.caches.symlink_to(tmp_path / "target")
    with run_folder(tmp_path, "model"):
        assert {path.name for path in tmp_path.iterdir()} == {".capdoctor-run", "target"}


def test_two_runs_never_write_into_one_folder(tmp_path: Path) -> None:
    with run_folder(tmp_path, "model") as folder:
        folder.log.write_text("of the first")
        with pytest.raises(CannotDo, match="another run"), run_folder(tmp_path, "model"):
            pass
        assert folder.log.read_text() == "of the first"


def test_a_run_that_was_never_tried_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError), run_folder(tmp_path / "new/out", "model"):
        raise UsageError("no such demo")
    assert not (tmp_path / "new/out").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(UsageError), run_folder(tmp_path / "old", "model"):
        raise UsageError("no such demo")
    assert (tmp_path / "old").is_dir()
    with pytest.raises(CannotDo), run_folder(tmp_path / "tried", "model"):
        _print_and_fail(tmp_path / "tried/engine.log")
    assert (tmp_path / "tried/engine.log").is_file()


def _print_and_fail(log: Path) -> None:
    log.write_text("what it printed")
    raise CannotDo("set-up failed")


def test_a_relative_path_in_a_folder_that_is_gone_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(CannotDo, match="cannot be resolved"), run_folder(Path("out"), "model"):
        pass
