"""Where the user's files lie."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from capdoctor import folders, host


def test_state_and_caches_lie_where_xdg_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert host.runs_folder() == Path("/s/capdoctor/runs")
    assert folders.cache_folder() == Path("/c/capdoctor")
    monkeypatch.setenv("HOME", "/home/x")
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("XDG_STATE_HOME")
        else:
            monkeypatch.setenv("XDG_STATE_HOME", unset)
        assert folders.state_folder() == Path("/home/x/.local/state/capdoctor")


def test_a_user_without_a_home_has_folders_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for folder in (folders.state_folder(), folders.cache_folder(), host.runs_folder()):
        assert tmp_path in folder.parents
    assert folders.state_folder() != folders.cache_folder()


def test_a_relative_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.setenv("XDG_STATE_HOME", "here/state")
    assert folders.state_folder() == Path("/home/x/.local/state/capdoctor")
    monkeypatch.setenv("XDG_STATE_HOME", "~/elsewhere")
    assert folders.state_folder() == Path("/home/x/elsewhere/capdoctor")
