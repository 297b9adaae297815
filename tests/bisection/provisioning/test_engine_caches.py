"""What starts of one engine may share in a bisection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.bisection.history.mirror import open_mirror
from capdoctor.bisection.probes.probe import Place
from capdoctor.bisection.provisioning.engine_caches import engine_caches
from capdoctor.bisection.provisioning.worktrees import Worktrees
from tests.helpers.git_repo import Commit, build_repository

COMMITS = [
    Commit({"vllm/__init__.py": "0", "docs/a.md": "0"}),
    Commit({"docs/a.md": "1"}),
    Commit({"vllm/__init__.py": "1"}),
]


@pytest.fixture
def places(tmp_path: Path) -> list[Place]:
    shas = build_repository(tmp_path / "repo", COMMITS)
    mirror = open_mirror(tmp_path / "repo", tmp_path / "m")
    folders = [tmp_path / sha[:8] for sha in shas]
    return [
        Place(sha, mirror, tmp_path / "trees", out, stage="capture")
        for sha, out in zip(shas, folders, strict=True)
    ]


def test_only_commits_with_the_same_sources_share(places: list[Place]) -> None:
    first, docs, other = map(engine_caches, places)
    assert first == docs
    assert first["VLLM_CACHE_ROOT"] != other["VLLM_CACHE_ROOT"]
    assert set(first) == {"VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"}


def test_two_workers_never_write_into_one_cache(places: list[Place]) -> None:
    mine, yours = (engine_caches(replace(places[0], worker=worker)) for worker in (0, 1))
    assert not set(mine.values()) & set(yours.values())


@pytest.mark.parametrize("stage", [None, "config", "weights", "profile_run", "no such stage"])
def test_a_crash_that_may_depend_on_a_cache_never_meets_one(
    places: list[Place], stage: str | None
) -> None:
    assert engine_caches(replace(places[0], stage=stage)) == {}


@pytest.mark.parametrize("stage", ["profile_cudagraph_memory", "kv_cache", "warmup", "capture"])
def test_a_crash_after_compilation_does_not_need_it_again(places: list[Place], stage: str) -> None:
    assert engine_caches(replace(places[0], stage=stage))


def test_what_the_user_has_set_stays(places: list[Place], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CACHE_ROOT", "/mine")
    assert "VLLM_CACHE_ROOT" not in engine_caches(places[0])


def test_they_go_with_the_worktrees(places: list[Place]) -> None:
    trees = Worktrees(places[0].mirror, places[0].worktrees)
    trees.checkout(0, places[0].sha)
    folder = Path(engine_caches(places[0])["VLLM_CACHE_ROOT"])
    folder.mkdir(parents=True)
    trees.remove()
    assert not folder.exists()
