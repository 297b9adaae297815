"""What --model may name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capdoctor.engines.models import find_model
from capdoctor.errors import CannotDo


def folder(tmp_path: Path, config: object = None, *others: str) -> Path:
    text = config if isinstance(config, str) else json.dumps(config or {"model_type": "llama"})
    (tmp_path / "config.json").write_text(text)
    for name in others:
        (tmp_path / name).write_text("{}")
    return tmp_path


def test_a_folder_with_a_config_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    model = find_model(f"./{tmp_path.name}")
    assert model.name == str(tmp_path)
    assert model.local
    assert not model.has_tokenizer
    assert not model.has_processor


def test_tokenizers_and_processors_are_noticed(tmp_path: Path) -> None:
    model = find_model(str(folder(tmp_path, None, "tokenizer.json", "preprocessor_config.json")))
    assert model.has_tokenizer
    assert model.has_processor


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\x00\x01", '"config"'])
def test_a_broken_config_is_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(CannotDo) as caught:
        find_model(str(folder(tmp_path, text)))
    assert "config.json" in caught.value.sentence
    assert caught.value.hint


def test_a_folder_without_a_config_and_a_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="has no config"):
        find_model(str(tmp_path))
    (tmp_path / "weights.gguf").write_text("x")
    with pytest.raises(CannotDo, match="is a file, not a folder"):
        find_model(str(tmp_path / "weights.gguf"))


def test_mistrals_own_format_is_a_config_too(tmp_path: Path) -> None:
    (tmp_path / "params.json").write_text('{"dim": 64, "n_layers": 2}')
    model = find_model(str(tmp_path))
    assert model.config is None
    assert model.in_mistral_format()
    assert not model.in_mistral_format("hf")


@pytest.mark.parametrize(
    ("files", "config_format", "mistral"),
    [
        ([], None, False),
        (["params.json"], None, False),  # without its weights vLLM takes config.json
        (["params.json"], "mistral", True),
        (["params.json", "consolidated.safetensors"], None, True),
        (["params.json", "consolidated-00001-of-2.safetensors"], "auto", True),
        (["params.json", "consolidated.safetensors"], "hf", False),
        (["consolidated.safetensors"], None, False),
        ([], "mistral", True),
    ],
)
def test_of_two_formats_the_one_that_vllm_reads_is_known(
    tmp_path: Path, files: list[str], config_format: str | None, mistral: bool
) -> None:
    model = find_model(str(folder(tmp_path, None, *files)))
    assert model.in_mistral_format(config_format) is mistral


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/model", "~/none", "a/b/c", "a b"])
def test_a_path_that_is_not_there_is_no_hub_id(name: str) -> None:
    with pytest.raises(CannotDo, match="no model folder"):
        find_model(name)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "gpt2", "deepseek-ai/DeepSeek-V3.2"])
def test_a_hub_id_is_taken_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    model = find_model(name)
    assert (model.name, model.local, model.config) == (name, False, None)


def test_a_cached_hub_model_lends_its_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--lab--m/snapshots/abc"
    snapshot.mkdir(parents=True)
    folder(snapshot, {"num_hidden_layers": 7})
    assert find_model("lab/m").config == {"num_hidden_layers": 7}


def test_a_config_that_nests_without_end_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[" * 200_000)
    with pytest.raises(CannotDo, match="cannot be read"):
        find_model(str(tmp_path))


def test_a_user_without_a_home_can_name_a_hub_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_path: str) -> str:
        return _path

    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", homeless)
    assert find_model("lab/m").config is None
