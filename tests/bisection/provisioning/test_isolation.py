"""What one commit's run must not find of another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.observation import Saw
from capdoctor.bisection.probes.command import CommandProbe
from capdoctor.bisection.probes.probe import Place
from capdoctor.bisection.provisioning.isolation import isolated
from tests.helpers.git_repo import Commit, build_repository

AITER = {"aiter/__init__.py": "", "csrc/a.cu": "0"}


def _places(tmp_path: Path, commits: list[Commit]) -> list[Place]:
    shas = build_repository(tmp_path / "repo", commits)
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    return [Place(sha, mirror, tmp_path / "trees", tmp_path / sha[:8]) for sha in shas]


def test_aiters_modules_are_kept_apart_by_their_native_sources(tmp_path: Path) -> None:
    commits = [Commit(AITER), Commit({"aiter/x.py": "1"}), Commit({"csrc/a.cu": "1"})]
    folders = [isolated(place, tmp_path)["AITER_JIT_DIR"] for place in _places(tmp_path, commits)]
    assert folders[0] == folders[1] != folders[2]


def test_vllm_never_falls_back_to_nightly_binaries(tmp_path: Path) -> None:
    (place,) = _places(tmp_path, [Commit({"vllm/__init__.py": ""})])
    assert isolated(place, tmp_path)["VLLM_PRECOMPILED_WHEEL_COMMIT"] == place.sha


def test_what_the_user_has_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AITER_JIT_DIR", "/mine")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/mine")
    (place,) = _places(tmp_path, [Commit(AITER)])
    assert not {"AITER_JIT_DIR", "TRITON_CACHE_DIR"} & isolated(place, tmp_path).keys()


def test_every_run_has_fresh_caches_and_leaves_none(tmp_path: Path) -> None:
    (place,) = _places(tmp_path, [Commit({"a": "1"})])
    command = 'mkdir -p "$VLLM_CACHE_ROOT" && touch "$VLLM_CACHE_ROOT/x" && test ! -e old'
    for _ in range(2):
        assert (
            CommandProbe(f"test ! -e $VLLM_CACHE_ROOT/x && {command}").run(place).saw is Saw.CLEAN
        )
    assert sorted(path.name for path in place.out.iterdir()) == ["command.log"]
