"""What a start of vLLM does without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.leanings import forget_bytecode, leanings
from capdoctor.engines.pythons import InstalledVllm, TargetPython
from capdoctor.folders import cache_folder
from capdoctor.model import EngineSpec, Stage

GRAPHS = EngineSpec("vllm", "m", stop_after=Stage.PROFILE_CUDAGRAPH_MEMORY)
SAMPLER = "VLLM_USE_FLASHINFER_SAMPLER"
PREFIX = "PYTHONPYCACHEPREFIX"


@pytest.fixture
def target(tmp_path: Path) -> TargetPython:
    """Give an installation with bytecode."""
    package = tmp_path / "site/vllm"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__pycache__/__init__.cpython-312.pyc").touch()
    installed = InstalledVllm("vllm", "0.33.0", package, None, None)
    return TargetPython(tmp_path, "3.12.4", tmp_path, installed, "2.13.0", "cuda 13.0")


def made(
    target: TargetPython, spec: EngineSpec = GRAPHS, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    return dict(leanings(spec, target, given or {}).variables)


@pytest.mark.parametrize("stage", [Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.KV_CACHE])
def test_a_question_about_graphs_needs_no_sampler(target: TargetPython, stage: Stage) -> None:
    found = leanings(replace(GRAPHS, stop_after=stage), target, {})
    assert found.variables == {SAMPLER: "0"}
    assert SAMPLER in found.changes[0]


@pytest.mark.parametrize(
    "stage", [None, Stage.CONFIG, Stage.PROFILE_RUN, Stage.WARMUP, Stage.CAPTURE]
)
def test_a_run_that_may_be_about_the_sampler_keeps_it(
    target: TargetPython, stage: Stage | None
) -> None:
    assert made(target, replace(GRAPHS, stop_after=stage)) == {}


@pytest.mark.parametrize(
    "spec",
    [
        replace(GRAPHS, engine_args={"speculative_config": {"method": "ngram"}}),
        replace(GRAPHS, extra_args=("--speculative-config", "{}")),
        replace(GRAPHS, extra_args=("--spec-method=mtp",)),
        replace(GRAPHS, extra_args=("-sc.method=mtp",)),
        replace(GRAPHS, extra_args=("--config", "all.yaml")),  # which may ask for one
        replace(GRAPHS, extra_args=("--config=all.yaml",)),
    ],
)
def test_a_draft_model_samples_inside_the_graphs(target: TargetPython, spec: EngineSpec) -> None:
    assert made(target, spec) == {}


def test_only_cuda_has_that_sampler(target: TargetPython) -> None:
    for build in ("cpu", "hip 7.1", None):
        assert made(replace(target, torch_build=build)) == {}


@pytest.mark.parametrize("value", ["0", "1", ""])
def test_the_users_word_on_the_sampler_stands(target: TargetPython, value: str) -> None:
    assert made(target, given={SAMPLER: value}) == {}


def test_bytecode_is_kept_where_nobody_meets_it_if_the_installation_has_none(
    target: TargetPython,
) -> None:
    other = replace(target, version="3.11.9")
    found = leanings(EngineSpec("vllm", "m"), other, {"PYTHONDONTWRITEBYTECODE": "1"})
    assert found.variables == {
        PREFIX: str(cache_folder() / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    assert "bytecode" in found.changes[0]


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_bytecode_is_not_kept_where_others_could_put_some(
    target: TargetPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """It is run unread, and whoever knows the wheel can make some that is taken for current."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    other = replace(target, version="3.11.9")
    assert PREFIX in made(other)
    (tmp_path / "cache").chmod(mode)
    assert made(other, EngineSpec("vllm", "m")) == {}


def test_bytecode_is_not_kept_where_no_folder_can_be_made(
    target: TargetPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert made(replace(target, version="3.11.9"), EngineSpec("vllm", "m")) == {}


def test_bytecode_of_sources_that_are_gone_goes_and_no_other(tmp_path: Path) -> None:
    overlay, site = tmp_path / "run/overlay", tmp_path / "site"
    cache = tmp_path / "cache"
    for folder in (overlay, site):
        kept = cache.joinpath(*folder.parts[1:]) / "vllm"
        kept.mkdir(parents=True)
        (kept / "x.cpython-312.pyc").touch()
    forget_bytecode({}, overlay)
    assert len(list(cache.rglob("*.pyc"))) == 2
    forget_bytecode({PREFIX: str(cache)}, overlay)
    assert [path.relative_to(cache).parts[-3] for path in cache.rglob("*.pyc")] == ["site"]


def test_the_users_own_place_for_bytecode_stands(target: TargetPython) -> None:
    other = replace(target, version="3.11.9")
    assert made(other, EngineSpec("vllm", "m"), {PREFIX: "/mine"}) == {}


def test_bytecode_of_another_python_is_none(target: TargetPython) -> None:
    assert PREFIX in made(replace(target, version="3.1.9"))
    assert PREFIX in made(replace(target, version="3.13.0"))
    assert PREFIX not in made(replace(target, version="3.12.99"))
