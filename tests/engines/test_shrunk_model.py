"""The folder from which an engine reads a smaller config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.models import Model, find_model
from capdoctor.engines.shrunk_model import shrunk_arguments
from capdoctor.errors import CannotDo, UsageError

DEEP = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 40,
    "hidden_size": 64,
    "num_attention_heads": 4,
}


def _model(folder: Path, config: dict[str, Any], **files: str) -> Model:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return find_model(str(folder))


def _read(arguments: dict[str, Any], name: str = "config.json") -> Any:
    return json.loads((Path(arguments["hf_config_path"]) / name).read_text())


def test_the_engine_is_given_a_whole_config_beside_the_model(tmp_path: Path) -> None:
    model = _model(tmp_path / "model", DEEP)
    arguments, changes = shrunk_arguments(model, {}, tmp_path / "run")
    assert _read(arguments) == {**DEEP, "num_hidden_layers": 2}
    assert Path(str(arguments["hf_config_path"])).parent == tmp_path / "run"
    assert "model" not in arguments
    assert "num_hidden_layers: 40 -> 2" in changes
    assert "as in the full model: attention backend, graph mode" in changes
    assert json.loads((tmp_path / "model/config.json").read_text()) == DEEP


def test_code_and_settings_that_belong_to_the_config_are_beside_it(tmp_path: Path) -> None:
    files = {
        "configuration_own__py": "class Own: ...",
        "generation_config__json": "{}",
        "model__safetensors": "weights",
        "tokenizer__json": "{}",
        "params__json": "{}",
    }
    model = _model(tmp_path / "model", DEEP, **files)
    for _ in range(2):  # a second run into the same folder finds its own files there
        arguments, _said = shrunk_arguments(model, {}, tmp_path / "run")
    names = {path.name for path in Path(str(arguments["hf_config_path"])).iterdir()}
    assert names == {"config.json", "configuration_own.py", "generation_config.json"}


def test_a_quantisation_config_of_its_own_file_follows_the_layers(tmp_path: Path) -> None:
    config = {**DEEP, "layer_types": ["a"] * 39 + ["b"]}
    names = ["lm_head", *(f"model.layers.{n}.mlp" for n in range(40))]
    own = {"producer": {"name": "modelopt"}, "quantization": {"exclude_modules": names}}
    model = _model(tmp_path / "model", config, hf_quant_config__json=json.dumps(own))
    arguments, _changes = shrunk_arguments(model, {}, tmp_path / "run")
    left = ["lm_head", "model.layers.0.mlp", "model.layers.1.mlp"]
    assert _read(arguments, "hf_quant_config.json") == {
        "producer": {"name": "modelopt"},
        "quantization": {"exclude_modules": left},
    }


@pytest.mark.parametrize("around", ['{"text_config": %s}', '{"a": %s}', "[%s]"])
def test_a_config_nested_beyond_reason_is_one_sentence(tmp_path: Path, around: str) -> None:
    deep = "1"
    for _ in range(900):
        deep = around.replace("%s", deep)
    (tmp_path / "config.json").write_text(f'{{"num_hidden_layers": 9, "text_config": {deep}}}')
    with pytest.raises(CannotDo) as refused:
        shrunk_arguments(find_model(str(tmp_path)), {}, tmp_path / "run")
    assert refused.value.hint


def test_the_users_folder_stays_as_it_is(tmp_path: Path) -> None:
    """Links into it lie in the way of what is written; a read-only folder is as good."""
    own = {"quantization": {"exclude_modules": ["model.layers.39.mlp"]}}
    files = {"hf_quant_config__json": json.dumps(own), "configuration_own__py": "class Own: ..."}
    model = _model(tmp_path / "model", DEEP, **files)
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    (tmp_path / "model").chmod(0o555)
    made = [shrunk_arguments(model, {}, tmp_path / "run") for _ in range(3)]
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert made[0] == made[1] == made[2]
    assert not (tmp_path / "run/shrunk/hf_quant_config.json").is_symlink()


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_quantisation_file_that_cannot_be_read_is_left_to_the_engine(
    tmp_path: Path, text: str
) -> None:
    model = _model(tmp_path / "model", DEEP, hf_quant_config__json=text)
    arguments, _changes = shrunk_arguments(model, {}, tmp_path / "run")
    assert _read(arguments)["num_hidden_layers"] == 2
    own = Path(str(arguments["hf_config_path"])) / "hf_quant_config.json"
    assert own.read_text() == text


def test_a_model_that_stays_as_it_is_is_read_where_it_lies(tmp_path: Path) -> None:
    model = _model(tmp_path / "model", {**DEEP, "num_hidden_layers": 2})
    arguments, _changes = shrunk_arguments(model, {}, tmp_path / "run")
    assert "hf_config_path" not in arguments
    assert not (tmp_path / "run").exists()
    assert arguments["max_num_seqs"] == 8


def test_a_config_path_of_the_users_is_what_is_cut(tmp_path: Path) -> None:
    model = _model(tmp_path / "model", DEEP)
    _model(tmp_path / "other", {**DEEP, "hidden_size": 128})
    given: dict[str, Any] = {"hf_config_path": str(tmp_path / "other")}
    arguments, _changes = shrunk_arguments(model, given, tmp_path / "run")
    assert _read(arguments) == {**DEEP, "hidden_size": 128, "num_hidden_layers": 2}


def test_the_users_overrides_are_in_the_config_once(tmp_path: Path) -> None:
    model = _model(tmp_path / "model", DEEP)
    types = ["full"] * 20 + ["window"] * 20
    given: dict[str, Any] = {"hf_overrides": {"layer_types": types, "rope_theta": 5.0}}
    arguments, _changes = shrunk_arguments(model, given, tmp_path / "run")
    assert _read(arguments)["layer_types"] == ["full", "window"]
    assert arguments["hf_overrides"] == {"rope_theta": 5.0}
    assert given["hf_overrides"]["layer_types"] == types


def test_heads_per_rank_are_told_for_the_ranks_of_the_run(tmp_path: Path) -> None:
    model = _model(tmp_path / "model", DEEP)
    _arguments, changes = shrunk_arguments(model, {"tensor_parallel_size": 2}, tmp_path / "run")
    assert changes[-1].startswith("heads per rank: 2 (tensor-parallel size 2)")


@pytest.mark.parametrize(
    "words",
    [
        ["--hf-overrides", '{"num_hidden_layers": 3}'],
        ["--hf-overrides.num_hidden_layers=3"],
        ["--hf_config_path", "elsewhere"],
    ],
)
def test_a_config_behind_the_dashes_is_not_silently_mixed_with_the_smaller_one(
    tmp_path: Path, words: list[str]
) -> None:
    model = _model(tmp_path / "model", DEEP)
    with pytest.raises(UsageError, match="would undo it") as refused:
        shrunk_arguments(model, {}, tmp_path / "run", words)
    assert "--engine-arg hf_" in (refused.value.hint or "")


def test_draft_layers_stay_however_they_are_asked_for(tmp_path: Path) -> None:
    config = {**DEEP, "num_nextn_predict_layers": 1}
    model = _model(tmp_path / "model", config)
    words = ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}']
    arguments, _changes = shrunk_arguments(model, {}, tmp_path / "run", words)
    assert _read(arguments)["num_nextn_predict_layers"] == 1
    assert _read(arguments)["num_hidden_layers"] == 2
    assert "speculative_config" not in arguments  # the engine parses it by itself
    assert _read(shrunk_arguments(model, {}, tmp_path / "run")[0])["num_nextn_predict_layers"] == 0


def test_layers_that_a_draft_model_knows_by_number_stay(tmp_path: Path) -> None:
    model = _model(tmp_path / "model", {**DEEP, "num_experts": 64})
    given: dict[str, Any] = {"speculative_config": {"method": "eagle3", "model": "lab/draft"}}
    arguments, changes = shrunk_arguments(model, given, tmp_path / "run")
    assert _read(arguments) == {**DEEP, "num_experts": 8}
    assert changes[0].startswith("all layers stay")


def test_sizes_that_are_asked_for_behind_the_dashes_are_not_said_to_be_ours(
    tmp_path: Path,
) -> None:
    model = _model(tmp_path / "model", DEEP)
    words = ["--max-model-len", "64", "-cc.cudagraph_mode=FULL", "-tp", "2"]
    arguments, changes = shrunk_arguments(model, {}, tmp_path / "run", words)
    assert {"max_model_len", "compilation_config"} & set(arguments) == set()
    said = " ".join(changes)
    assert "max_model_len" not in said
    assert "capture_sizes" not in said
    assert "tensor-parallel size 2" in said


@pytest.mark.parametrize("words", [[], ["--config-format", "mistral"]])
def test_a_config_that_the_engine_does_not_read_is_not_cut_in_its_place(
    tmp_path: Path, words: list[str]
) -> None:
    weights = {} if words else {"consolidated__safetensors": "weights"}
    model = _model(tmp_path / "model", DEEP, params__json='{"n_layers": 40}', **weights)
    with pytest.raises(CannotDo, match=r"params\.json") as refused:
        shrunk_arguments(model, {}, tmp_path / "run", words)
    assert "config_format=hf" in (refused.value.hint or "")
    arguments, _changes = shrunk_arguments(model, {"config_format": "hf"}, tmp_path / "run")
    assert _read(arguments)["num_hidden_layers"] == 2


def test_a_config_that_is_not_here_cannot_be_cut(tmp_path: Path) -> None:
    model = Model("lab/model", local=False, config=None, has_tokenizer=True, has_processor=True)
    with pytest.raises(CannotDo, match="cannot be shrunk"):
        shrunk_arguments(model, {}, tmp_path)


def test_a_width_of_the_users_is_none_that_shrinking_changed(tmp_path: Path) -> None:
    given: dict[str, Any] = {"hf_overrides": {"hidden_size": 256, "num_attention_heads": 16}}
    model = _model(tmp_path / "model", DEEP)
    _arguments, changes = shrunk_arguments(model, given, tmp_path / "run")
    assert "as in the full model: attention backend, graph mode" in changes
    assert changes[-1].startswith("heads per rank: 16 ")
