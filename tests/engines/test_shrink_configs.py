"""Configs of real models cut down: what must hold for each, and which layers stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.layer_fields import rules
from capdoctor.engines.layers import depth_of, kinds
from capdoctor.engines.quantized_layers import treatment
from capdoctor.engines.shrink import shrink

CONFIGS = Path(__file__).parents[1] / "data/configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.json"))
MAY_CHANGE = {*rules()["depth"], *rules()["stacks"], *rules()["thresholds"]}
# Read by hand from each config: the kinds of its layers in order, as the models build them.
LAYERS = {
    "deepseek-r1": ["dense", "experts"],
    "glm-5.3-fp8": [
        *("dense, own index",) * 3,
        *("experts, shared index",) * 3,
        "experts, own index",
    ],
    "gpt-oss-120b": ["window", "full"],
    "jamba-1.5-mini": ["mamba", "mamba + experts", "mamba", "mamba + experts", "attention"],
    "kimi-linear": ["dense, linear", "experts, linear", "experts, full"],
    "lfm2-8b-a1b": ["conv, dense", "attention, experts", "conv, experts"],
    "mimo-v2-flash": ["full, dense", "window, experts", "full, experts"],
    "mixtral-8x7b": ["experts", "experts"],
    "nemotron-3-ultra": ["mamba", "experts", "attention"],
    "qwen3.5-122b-a10b": ["linear", "full"],
    "step-3.7-flash": ["full, dense", "window, dense", "window, experts", "full, experts"],
}


def _config(name: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text())
    return config


@cache
def _shrunk(name: str) -> Mapping[str, Any]:
    return shrink(_config(name)).config


def _language(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a config that has the layers."""
    inner = next((config[key] for key in rules()["nested"] if config.get(key)), None)
    return config if depth_of(config) or inner is None else _language(inner)


def _kinds(config: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    text = _language(config)
    depth = depth_of(text)
    assert depth
    quantization = text.get("quantization_config") or config.get("quantization_config") or {}
    return kinds(text, depth, [treatment(quantization, depth)])


def _in_order(values: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(values))


def _leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def test_every_config_says_where_it_is_from() -> None:
    sources = tomllib.loads((CONFIGS / "sources.toml").read_text())["from"]
    assert sorted(name for names in sources.values() for name in names) == NAMES
    assert len(NAMES) >= 50


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_layer_stays_in_its_order(name: str) -> None:
    config = _config(name)
    assert _in_order(_kinds(_shrunk(name))) == _in_order(_kinds(config))


@pytest.mark.parametrize("name", NAMES)
def test_every_list_of_layers_is_as_long_as_there_are_layers(name: str) -> None:
    full, small = _language(_config(name)), _language(_shrunk(name))
    deep, depth = depth_of(full), depth_of(small)
    assert deep
    assert depth
    cut = dict(_leaves(small))
    lists = [key for key, value in _leaves(full) if isinstance(value, list) and len(value) == deep]
    if depth < deep:
        assert [len(cut[key]) for key in lists if "idxs" not in key] == [depth] * len(lists)


@pytest.mark.parametrize("name", NAMES)
def test_a_small_model_is_as_small_as_it_gets(name: str) -> None:
    assert shrink(_shrunk(name)).overrides == {}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_grows_and_widths_stay(name: str) -> None:
    sizes = dict(_leaves(_shrunk(name)))
    for path, value in _leaves(_config(name)):
        if isinstance(value, (list, str)) and path in sizes:
            assert len(sizes[path]) <= len(value)
        elif isinstance(value, int) and "layers." not in path and sizes[path] != value:
            assert sizes[path] < value
            key = path.rpartition(".")[2]
            assert key in MAY_CHANGE or re.search("expert|end_index|shared|nextn|mtp", key), path


@pytest.mark.parametrize(("name", "layers"), LAYERS.items())
def test_the_layers_that_stay_are_these(name: str, layers: list[str]) -> None:
    small = _kinds(_shrunk(name))
    assert len(small) == len(layers)
    # Two layers are of one kind here exactly where they are by hand.
    alike = [[a == b for b in small] for a in small]
    assert alike == [[a == b for b in layers] for a in layers]


def test_each_sharing_layer_has_its_producer_before_it() -> None:
    small: Any = _shrunk("gemma-3n")["text_config"]
    shared = small["num_kv_shared_layers"]
    own = small["layer_types"][:-shared]
    assert shared
    assert set(small["layer_types"][-shared:]) <= set(own)
    index: Any = _shrunk("glm-5.3-fp8")["indexer_types"]
    assert index == ["full", "full", "full", "shared", "shared", "shared", "full"]


def test_names_of_layers_that_went_are_nowhere_left() -> None:
    for name in ("glm-5.3-fp8", "qwen3.6-27b-nvfp4", "gemma-4-31b-nvfp4", "qwen3-30b-a3b-fp8"):
        small = _shrunk(name)
        depth = depth_of(_language(small))
        drafts = 1 if name.startswith("glm") else 0
        assert depth
        text = json.dumps(small["quantization_config"])
        numbers = {
            int(part.split(".")[0].split("*")[0]) for part in text.split("model.layers.")[1:]
        }
        assert max(numbers, default=0) < depth + drafts
