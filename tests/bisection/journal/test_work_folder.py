"""Folders of bisections, and the lock that keeps two out of one."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from capdoctor.bisection.journal.lock import locked
from capdoctor.bisection.journal.work_folder import (
    JOURNAL,
    find_work_folder,
    known_work_folders,
    new_work_folder,
)
from capdoctor.errors import CannotDo


def test_two_bisections_of_one_second_have_two_folders() -> None:
    assert new_work_folder("vllm-a/b-c") != new_work_folder("vllm-a/b-c")


def test_the_latest_is_found_by_default_and_any_by_name() -> None:
    with pytest.raises(CannotDo, match="no bisection"):
        find_work_folder(None)
    older, newer = new_work_folder("x"), new_work_folder("x")
    for age, folder in enumerate((newer, older)):
        (folder / JOURNAL).touch()
        os.utime(folder / JOURNAL, (1e9 - age, 1e9 - age))
    assert known_work_folders() == [newer, older]
    assert find_work_folder(None) == newer
    assert find_work_folder(older) == find_work_folder(Path(older.name)) == older


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="holds no bisection"):
        find_work_folder(tmp_path)


def test_another_process_is_kept_out_and_named(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    begin, end = context.Event(), context.Event()

    def hold() -> None:
        with locked(tmp_path):
            begin.set()
            end.wait(20)

    other = context.Process(target=hold)
    other.start()
    try:
        assert begin.wait(20)
        with pytest.raises(CannotDo, match=f"process {other.pid} is bisecting"), locked(tmp_path):
            pytest.fail("both hold it")
    finally:
        end.set()
        other.join()
    with locked(tmp_path):
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    begin = context.Event()

    def hold() -> None:
        with locked(tmp_path):
            begin.set()
            context.Event().wait(20)

    other = context.Process(target=hold)
    other.start()
    assert begin.wait(20)
    other.kill()
    other.join()
    with locked(tmp_path):
        assert True
