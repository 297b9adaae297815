"""Layers that quantisation configs name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.quantized_layers import has_patterns_with_numbers, renamed, treatment
from capdoctor.engines.shrink import shrink

KEPT = [0, 3]


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("model.layers.0.mlp.gate", "model.layers.0.mlp.gate"),
        ("model.layers.3.self_attn*", "model.layers.1.self_attn*"),
        ("language_model.model.layers.3.mlp", "language_model.model.layers.1.mlp"),
        ("backbone.layers.3", "backbone.layers.1"),
        pytest.param("model.layers.7.eh_proj", "model.layers.2.eh_proj", id="the first draft"),
        pytest.param("model.layers.8.eh_proj", "model.layers.3.eh_proj", id="the second draft"),
        ("model.layers.2.mlp", None),
        ("lm_head", "lm_head"),
        ("model.layers.*.mlp.router", "model.layers.*.mlp.router"),
        ("re:.*layers\\.(2|3)\\.mlp.*", "re:.*layers\\.(2|3)\\.mlp.*"),
        pytest.param("model.layers.2*", "model.layers.2*", id="2 and 20 to 29 at once"),
        ("vision_tower.encoder.layers.2.fc1", "vision_tower.encoder.layers.2.fc1"),
        ("model.visual.layers.2", "model.visual.layers.2"),
        ("mtp.layers.2.mlp", "mtp.layers.2.mlp"),
        ("model.layers.3.mlp.experts.12.w1", "model.layers.1.mlp.experts.12.w1"),
    ],
)
def test_names_follow_their_layer(name: str, new: str | None) -> None:
    config = {"ignore": [name], "quantized_layers": {name: {"algo": "FP8"}}, "bits": 8}
    kept = [] if new is None else [new]
    assert renamed(config, 7, KEPT) == {
        "ignore": kept,
        "quantized_layers": {key: {"algo": "FP8"} for key in kept},
        "bits": 8,
    }


def test_what_names_no_layer_stays_as_it_is() -> None:
    config: dict[str, Any] = {
        "weight_block_size": [128, 128],
        "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": None}},
        "nothing": [None, 1, "lm_head", {"deep": ["model.layers.3"]}],
    }
    changed = renamed(config, 7, KEPT)
    assert changed.pop("nothing") == [None, 1, "lm_head", {"deep": ["model.layers.1"]}]
    assert changed == {key: value for key, value in config.items() if key != "nothing"}


def test_a_layer_that_is_treated_otherwise_is_of_another_kind() -> None:
    said = treatment({"ignore": ["model.layers.1.mlp", "model.layers.3.mlp"]}, 4)
    assert said[0] == said[2] != said[1] == said[3]


def test_experts_of_one_layer_are_one() -> None:
    names = {f"model.layers.{n}.experts.{e}.w1": "FP4" for n in range(2) for e in range(3 + n)}
    first, second = treatment({"quantized_layers": names}, 2)
    assert first == second


@pytest.mark.parametrize(
    "config", [{}, {"ignore": []}, {"ignore": ["lm_head", "re:.*layers\\.1\\..*"]}, {"bits": 4}]
)
def test_all_layers_are_alike_where_none_is_named(config: dict[str, Any]) -> None:
    assert set(treatment(config, 5)) == {frozenset()}


@given(st.integers(1, 30).flatmap(lambda depth: st.tuples(
    st.just(depth), st.sets(st.integers(0, depth - 1), min_size=1)
)))  # fmt: skip
def test_the_layers_that_stay_keep_their_treatment(layers: tuple[int, set[int]]) -> None:
    depth, chosen = layers
    kept = sorted(chosen)
    config = {"ignore": [f"model.layers.{n}.mlp.{'gate' if n % 3 else 'up'}" for n in range(depth)]}
    before = treatment(config, depth)
    after = treatment(renamed(config, depth, kept), len(kept))
    assert after == [before[index] for index in kept]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([r"re:.*layers\.61\..*"], True),
        ([r"re:model.layers.(0|1).mlp"], True),
        ([r"re:.*layers\.\d+\.mlp"], False),  # of every layer
        ([r"re:.*layers\.[0-9]+\.mlp"], False),
        ([r"re:.*layers\.[0-3]\.mlp"], True),
        ([r"re:.*layers\.(?:7|8)\.mlp"], True),
        (["re:.*lm_head", "model.layers.3.mlp"], False),
        ([None, 3], False),
    ],
)
def test_patterns_that_name_layers_by_number_are_told(names: list[Any], found: bool) -> None:
    assert has_patterns_with_numbers({"config_groups": {"g": {"targets": names}}}) is found
    config = {"num_hidden_layers": 62, "quantization_config": {"ignore": names}}
    said = " ".join(shrink(config).changes)
    assert ("patterns with the numbers of layers are left" in said) is found
