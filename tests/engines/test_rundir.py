"""The folder of a run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from capdoctor.engines.rundir import RunFolder, make_run_folder, write_json, write_text, writing
from capdoctor.errors import CannotDo


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
    one, other = make_run_folder(None, model).root, make_run_folder(None, model).root
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
