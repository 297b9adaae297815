"""Which repository --repo means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.bisection import repositories
from capdoctor.bisection.repositories import find_repository
from capdoctor.errors import CannotDo
from tests.helpers.git_repo import Commit, build_repository, git, linear


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert find_repository(str(tmp_path), None) == tmp_path.resolve()


def test_a_missing_folder_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="is not a folder"):
        find_repository(str(tmp_path / "x"), None)


def test_the_environment_names_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPDOCTOR_REPO_VLLM", str(tmp_path))
    assert find_repository("vllm", None) == tmp_path.resolve()
    monkeypatch.setenv("CAPDOCTOR_REPO_VLLM", str(tmp_path / "gone"))
    with pytest.raises(CannotDo, match="CAPDOCTOR_REPO_VLLM"):
        find_repository("vllm", None)


def test_an_editable_checkout_of_the_target_python_is_used(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout with space"
    build_repository(checkout, linear(2))
    told = json.dumps(
        {"url": f"file://{str(checkout).replace(' ', '%20')}", "dir_info": {"editable": True}}
    )
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{told}'\n")
    python.chmod(0o755)
    assert find_repository("vllm", python) == checkout


def test_else_a_clone_without_blobs_is_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = tmp_path / "origin"
    build_repository(origin, linear(3), tags={"v1": 1})
    git(origin, "config", "uploadpack.allowFilter", "true")
    monkeypatch.setitem(repositories.KNOWN, "vllm", (f"file://{origin}", ("vllm",)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = find_repository("vllm", None)
    assert folder == tmp_path / "cache/capdoctor/repositories/vllm"
    assert git(folder, "config", "remote.origin.partialclonefilter") == "blob:none"
    (origin / "more.txt").write_text("x")
    git(origin, "add", "more.txt")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    git(origin, *who, "commit", "--quiet", "-m", "more")
    assert find_repository("vllm", None) == folder
    assert git(folder, "rev-parse", "main") == git(origin, "rev-parse", "main")


def test_a_clone_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = f"file://{tmp_path / 'gone'}"
    monkeypatch.setitem(repositories.KNOWN, "aiter", (gone, ("aiter",)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(CannotDo, match="clone failed"):
        find_repository("aiter", None)
    assert not list((tmp_path / "cache/capdoctor/repositories").iterdir())


def test_what_is_called_like_a_known_one_but_is_a_folder_here_is_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_repository(tmp_path / "vllm", [Commit({"a": "1"})])
    monkeypatch.setenv("CAPDOCTOR_REPO_VLLM", str(tmp_path / "vllm"))
    monkeypatch.chdir(tmp_path)
    assert find_repository("vllm", None) == (tmp_path / "vllm").resolve()
