from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.commands import engine_spec
from capdoctor.errors import UsageError
from capdoctor.model import EngineSpec, Json, Stage

EMBEDDED = EngineSpec(kind="embedded", model="demo/clean")
VLLM = EngineSpec(kind="vllm", model="org/model")


@pytest.mark.parametrize(
    ("model", "wanted", "kind"),
    [
        ("demo/sparse-mla", None, "embedded"),
        ("demo/sparse-mla", "embedded", "embedded"),
        ("mine.py", None, "embedded"),
        ("org/model", None, "vllm"),
        ("./folder", "vllm", "vllm"),
    ],
)
def test_the_model_decides_the_engine(model: str, wanted: str | None, kind: str) -> None:
    assert engine_spec.engine_kind(model, wanted) == kind


@pytest.mark.parametrize(
    ("model", "wanted"),
    [("demo/clean", "vllm"), ("mine.py", "vllm"), ("org/model", "embedded")],
)
def test_an_engine_that_cannot_run_the_model_is_refused(model: str, wanted: str) -> None:
    with pytest.raises(UsageError):
        engine_spec.engine_kind(model, wanted)


@pytest.mark.parametrize(
    ("pair", "key", "value"),
    [
        ("max_model_len=2048", "max_model_len", 2048),
        ("--max-model-len=2048", "max_model_len", 2048),
        ("dtype=bfloat16", "dtype", "bfloat16"),
        ('hf_overrides={"a": [1, null]}', "hf_overrides", {"a": [1, None]}),
        ("enforce_eager=true", "enforce_eager", True),
        ("revision=a=b", "revision", "a=b"),
        ("quantization=", "quantization", ""),
    ],
)
def test_values_are_json_or_text(pair: str, key: str, value: Json) -> None:
    assert engine_spec.engine_arguments([pair]) == {key: value}


@pytest.mark.parametrize("pairs", [["novalue"], ["=1"], ["a b=1"], ["a=1", "a=2"]])
def test_what_is_not_key_value_is_refused(pairs: list[str]) -> None:
    with pytest.raises(UsageError):
        engine_spec.engine_arguments(pairs)


def test_a_stage_is_known_by_its_name() -> None:
    assert engine_spec.stage("config") is Stage.CONFIG
    assert engine_spec.stage(None) is None


@pytest.mark.parametrize("name", ["serving", "shutdown", "Config", "nonsense", ""])
def test_what_cannot_be_stopped_after_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no stage"):
        engine_spec.stage(name)


@pytest.mark.parametrize(
    "spec",
    [
        replace(EMBEDDED, python=Path("/usr/bin/python3")),
        replace(EMBEDDED, tensor_parallel_size=2),
        replace(EMBEDDED, extra_args=("--x",)),
        replace(EMBEDDED, shrink=True),
        replace(EMBEDDED, device="cuda", as_torch="2.10"),
        replace(VLLM, as_torch="2.10"),
        replace(VLLM, device="cuda"),
    ],
)
def test_options_of_the_other_engine_are_refused(spec: EngineSpec) -> None:
    with pytest.raises(UsageError):
        engine_spec.check_consistent(spec, repeat=1, matrix=False)


def test_repeat_and_matrix_contradict_each_other() -> None:
    with pytest.raises(UsageError):
        engine_spec.check_consistent(VLLM, repeat=2, matrix=True)


@pytest.mark.parametrize("spec", [EMBEDDED, VLLM, replace(VLLM, tensor_parallel_size=2)])
def test_consistent_options_pass(spec: EngineSpec) -> None:
    engine_spec.check_consistent(spec, repeat=3, matrix=False)


def test_a_source_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.touch()
    with pytest.raises(UsageError):
        engine_spec.existing_folder(file, "--source")
    assert engine_spec.existing_folder(tmp_path, "--source") == tmp_path.resolve()
