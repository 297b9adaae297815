"""What is looked up and laid out before an engine starts."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.defaults import vllm_defaults
from capdoctor.engines.models import Model
from capdoctor.engines.prepare import command_for, prepare, repro_command, with_graph_mode
from capdoctor.engines.rundir import RunFolder
from capdoctor.errors import CannotDo
from capdoctor.model import EngineSpec, Stage
from tests.engines.support import make_fake_python

MODELS = Path(__file__).parents[1] / "data/models"


@pytest.fixture
def spec(tmp_path: Path) -> EngineSpec:
    python = make_fake_python(tmp_path / "python")
    return EngineSpec("vllm", str(MODELS / "llama_tiny"), python=python)


def written(spec: EngineSpec, folder: Path) -> dict[str, object]:
    command = command_for(prepare(spec, folder), RunFolder(folder))
    assert command[0] == str(spec.python)
    found = json.loads(Path(command[2]).read_text())
    assert isinstance(found, dict)
    return found


def test_the_runner_gets_defaults_arguments_and_command_line_apart(
    spec: EngineSpec, tmp_path: Path
) -> None:
    spec = replace(
        spec, tensor_parallel_size=2, engine_args={"seed": 3}, extra_args=("--seed", "4")
    )
    assert written(spec, tmp_path) == {
        "model": str(MODELS / "llama_tiny"),
        "defaults": {
            "load_format": "dummy",
            "generation_config": "vllm",
            "skip_tokenizer_init": True,
        },
        "engine_args": {"seed": 3, "tensor_parallel_size": 2},
        "argv": ["--seed", "4"],
        "graph_mode": None,
        "expect_package": None,
    }


def test_a_graph_mode_reaches_the_runner(spec: EngineSpec, tmp_path: Path) -> None:
    prepared = with_graph_mode(prepare(spec, tmp_path), "FULL")
    command = command_for(prepared, RunFolder(tmp_path))
    assert json.loads(Path(command[2]).read_text())["graph_mode"] == "FULL"


def test_shrinking_reaches_the_runner_and_is_told(spec: EngineSpec, tmp_path: Path) -> None:
    model = tmp_path / "deep"
    model.mkdir()
    config = json.loads((MODELS / "llama_tiny/config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 40}))
    prepared = prepare(replace(spec, model=str(model), shrink=True), tmp_path)
    assert prepared.engine_args is not None
    read = Path(str(prepared.engine_args["hf_config_path"])) / "config.json"
    assert json.loads(read.read_text())["num_hidden_layers"] == 2
    assert "num_hidden_layers: 40 -> 2" in prepared.changes
    command = command_for(prepared, RunFolder(tmp_path))
    given = json.loads(Path(command[2]).read_text())
    # What a release may not know is no argument, with which it would refuse to start.
    assert given["defaults"]["enable_flashinfer_autotune"] is False
    assert given["engine_args"].keys() <= {
        "compilation_config",
        "hf_config_path",
        "max_model_len",
        "max_num_seqs",
    }


def test_a_hub_model_whose_config_is_elsewhere_cannot_be_shrunk(
    spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CannotDo, match="cannot be shrunk"):
        prepare(replace(spec, model="lab/model", shrink=True), tmp_path)


def test_engine_and_model_are_named_for_people(spec: EngineSpec, tmp_path: Path) -> None:
    prepared = prepare(spec, tmp_path)
    assert prepared.title.startswith("vLLM 0.33.0, ")
    assert prepared.offline
    embedded = prepare(EngineSpec("embedded", "demo/clean"), tmp_path)
    assert embedded.title == "embedded engine, demo/clean"


@pytest.mark.parametrize(
    ("config", "tokenizer", "processor", "defaults"),
    [
        ({}, True, True, set()),
        ({}, False, False, {"skip_tokenizer_init"}),
        ({"vision_config": {}}, True, True, set()),
        ({"vision_config": {}}, False, False, {"skip_tokenizer_init", "limit_mm_per_prompt"}),
    ],
)
def test_what_a_bare_config_needs_is_a_default(
    config: dict[str, object], tokenizer: bool, processor: bool, defaults: set[str]
) -> None:
    model = Model("m", local=True, config=config, has_tokenizer=tokenizer, has_processor=processor)
    assert vllm_defaults(model).keys() - {"load_format", "generation_config"} == defaults


def test_the_line_to_run_it_again_says_everything(tmp_path: Path) -> None:
    spec = EngineSpec(
        "vllm",
        "my model",
        python=Path("/opt/python"),
        source=Path("/src"),
        tensor_parallel_size=2,
        engine_args={"compilation_config": {"cudagraph_mode": "FULL"}},
        extra_args=("--max-model-len", "512"),
        shrink=True,
        stop_after=Stage.WEIGHTS,
        timeout=90.0,
        hang_after=60.5,
        trace=True,
        out=tmp_path,
    )
    line = repro_command(spec)
    assert shlex.split(line) == [
        *("capdoctor", "repro", "--model", "my model", "--python", "/opt/python"),
        *("--source", "/src", "-tp", "2"),
        *("--engine-arg", 'compilation_config={"cudagraph_mode": "FULL"}', "--shrink"),
        *("--stop-after", "weights", "--timeout", "90", "--hang-after", "60.5"),
        *("--trace", "--out", str(tmp_path), "--", "--max-model-len", "512"),
    ]
    assert repro_command(EngineSpec("embedded", "demo/clean")) == (
        "capdoctor repro --model demo/clean"
    )
