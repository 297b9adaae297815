"""Configs cut down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.layers import kinds
from capdoctor.engines.quantized_layers import treatment
from capdoctor.engines.shrink import shrink

DEEPSEEK = {
    "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1,
    "first_k_dense_replace": 3,
    "n_routed_experts": 256,
    "n_group": 8,
    "topk_group": 4,
    "num_experts_per_tok": 8,
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "kv_lora_rank": 512,
    "index_topk": 2048,
    "max_position_embeddings": 163840,
}


def test_depth_experts_and_draft_layers_go_and_widths_stay() -> None:
    small = shrink(DEEPSEEK)
    assert small.overrides == {
        "num_hidden_layers": 2,
        "first_k_dense_replace": 1,
        "n_routed_experts": 16,
        "num_nextn_predict_layers": 0,
    }


def test_the_router_still_has_enough_experts() -> None:
    for chosen in range(1, 17):
        config = {**DEEPSEEK, "num_experts_per_tok": chosen}
        experts: Any = shrink(config).overrides["n_routed_experts"]
        assert experts % 8 == 0
        assert experts // 8 * 4 >= chosen
        assert experts < 256


def test_it_says_what_became_of_what() -> None:
    changes = shrink(DEEPSEEK).changes
    assert "num_hidden_layers: 61 -> 2" in changes
    assert "n_routed_experts: 256 -> 16" in changes
    assert any(change.startswith("engine: max_num_seqs") for change in changes)


def test_a_text_config_inside_is_cut_in_its_place() -> None:
    nested = {"text_config": {"num_hidden_layers": 48}, "vision_config": {"num_hidden_layers": 27}}
    small = shrink(nested)
    assert small.overrides == {"text_config": {"num_hidden_layers": 2}}
    assert "text_config.num_hidden_layers: 48 -> 2" in small.changes


def test_a_model_that_is_small_already_stays_as_it_is() -> None:
    path = Path(__file__).parents[1] / "data/models/llama_tiny/config.json"
    assert shrink(json.loads(path.read_text())).overrides == {}


def test_the_length_never_exceeds_what_the_model_has() -> None:
    assert shrink({"max_position_embeddings": 1024}).engine_args["max_model_len"] == 1024
    assert shrink(DEEPSEEK).engine_args["max_model_len"] == 2048


def test_what_the_user_asked_for_wins() -> None:
    given: dict[str, Any] = {
        "max_model_len": 8192,
        "hf_overrides": {"num_hidden_layers": 5},
        "compilation_config": {"cudagraph_mode": "FULL"},
    }
    small = shrink(DEEPSEEK, given=given)
    assert small.config["num_hidden_layers"] == 5
    assert small.config["first_k_dense_replace"] == 3
    assert small.config["n_routed_experts"] == 16
    assert "max_model_len" not in small.engine_args
    arguments: Any = small.arguments(given)
    assert arguments["max_model_len"] == 8192
    assert arguments["hf_overrides"] == {"num_hidden_layers": 5}
    assert arguments["compilation_config"] == {
        "cudagraph_mode": "FULL",
        "cudagraph_capture_sizes": [1, 2, 4, 8],
    }


def test_graph_sizes_that_the_user_asked_for_are_not_mixed_with_ours() -> None:
    given: dict[str, Any] = {"compilation_config": {"max_cudagraph_capture_size": 64}}
    assert shrink(DEEPSEEK, given=given).arguments(given)["compilation_config"] == {
        "max_cudagraph_capture_size": 64
    }


def test_what_the_user_puts_over_the_config_decides_the_kinds_of_layers() -> None:
    given: dict[str, Any] = {
        "hf_overrides": {"index_topk_freq": 4, "layer_types": ["a"] * 60 + ["b"], "rope_theta": 5}
    }
    small = shrink(DEEPSEEK, given=given)
    assert small.config["num_hidden_layers"] == 61
    given["hf_overrides"].pop("index_topk_freq")
    small = shrink(DEEPSEEK, given=given)
    assert small.config["layer_types"] == ["a", "a", "b"]
    assert small.arguments(given)["hf_overrides"] == {"rope_theta": 5}


def test_draft_layers_stay_for_a_draft() -> None:
    given: dict[str, Any] = {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}
    config = {**DEEPSEEK, "layer_types": ["a"] * 61 + ["draft"]}
    small = shrink(config, given=given).config
    assert small["num_nextn_predict_layers"] == 1
    assert small["layer_types"] == ["a", "a", "draft"]
    assert shrink(config).config["layer_types"] == ["a", "a"]


def test_experts_divide_among_the_ranks_that_share_them() -> None:
    given: dict[str, Any] = {"tensor_parallel_size": 12, "enable_expert_parallel": True}
    assert shrink({"num_experts": 100}, given=given).config["num_experts"] == 12
    assert shrink({"num_experts": 100}, given={"tensor_parallel_size": 12}).config == {
        "num_experts": 8
    }


def test_experts_of_a_part_are_cut_too() -> None:
    config = {"n_layers": 40, "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4, "width": 9}}
    assert shrink(config).config == {
        "n_layers": 2,
        "ffn_config": {"moe_num_experts": 8, "moe_top_k": 4, "width": 9},
    }


def test_encoder_and_decoder_are_both_cut() -> None:
    small = shrink({"encoder_layers": 32, "decoder_layers": 4, "max_target_positions": 448})
    assert small.overrides == {"encoder_layers": 2, "decoder_layers": 2}
    assert small.engine_args["max_model_len"] == 448


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model_type": "never_seen", "depth": 40, "layers": [1, 2, 3]},
        {"num_hidden_layers": "40"},
        {"text_config": None, "num_hidden_layers": None},
    ],
)
def test_a_config_of_unknown_form_is_left_alone_and_that_is_said(config: dict[str, Any]) -> None:
    small = shrink(config)
    assert small.overrides == {}
    assert small.config == config
    assert "left as it is" in small.changes[0]


def test_names_of_layers_in_the_quantisation_follow() -> None:
    ignore = ["lm_head", *(f"model.layers.{n}.mlp" for n in (0, 5, 9))]
    config = {
        "layer_types": ["a"] * 5 + ["b"] * 5,
        "num_hidden_layers": 10,
        "quantization_config": {"quant_method": "fp8", "ignore": ignore},
    }
    small = shrink(config).config
    # Layers 1 and 6 are quantised, 0 and 5 are not: two kinds of each type.
    assert small["layer_types"] == ["a", "a", "b", "b"]
    quantization: Any = small["quantization_config"]
    assert quantization == {
        "quant_method": "fp8",
        "ignore": ["lm_head", "model.layers.0.mlp", "model.layers.2.mlp"],
    }


def test_the_language_model_of_an_omni_model_lies_two_deep() -> None:
    text = {"num_hidden_layers": 48, "num_experts": 128, "max_position_embeddings": 512}
    small = shrink({"thinker_config": {"text_config": text, "audio_config": {"num_layers": 9}}})
    assert small.overrides == {
        "thinker_config": {"text_config": {"num_hidden_layers": 2, "num_experts": 8}}
    }
    assert small.engine_args["max_model_len"] == 512
    assert "thinker_config.text_config.num_hidden_layers: 48 -> 2" in small.changes


NAMES = st.sampled_from(["full", "linear", "window"])


@st.composite
def _configs(draw: st.DrawFn) -> dict[str, Any]:
    """A config of the forms that real ones have, each part or not."""
    depth = draw(st.integers(2, 40))
    layers = st.integers(0, depth - 1)
    parts: dict[str, Any] = {
        "layer_types": st.lists(NAMES, min_size=depth, max_size=depth),
        "first_k_dense_replace": st.integers(0, depth),
        "num_kv_shared_layers": st.integers(0, depth - 1),
        "mlp_only_layers": st.lists(layers, unique=True).map(sorted),
        "decoder_sparse_step": st.integers(1, 4),
        "n_routed_experts": st.integers(1, 256),
        "num_nextn_predict_layers": st.integers(0, 2),
        "sparse_config": st.lists(st.integers(0, 1), min_size=depth, max_size=depth).map(
            lambda flags: {"use": True, "freq": flags}
        ),
        "quantization_config": st.lists(layers, unique=True).map(
            lambda names: {"ignore": [f"model.layers.{n}.mlp" for n in names]}
        ),
    }
    config: dict[str, Any] = {"num_hidden_layers": depth, "hidden_size": 64}
    for name, values in parts.items():
        if draw(st.booleans()):
            config[name] = draw(values)
    return {"text_config": config, "model_type": "outer"} if draw(st.booleans()) else config


@given(_configs())
def test_what_is_small_is_small_and_still_has_every_kind(config: dict[str, Any]) -> None:
    small = shrink(config)
    text: Any = small.config.get("text_config", small.config)
    whole = config.get("text_config", config)
    names = ("quantization_config", {})
    before, after = (
        kinds(each, depth, [treatment(each.get(*names), depth)])
        for each, depth in ((whole, whole["num_hidden_layers"]), (text, text["num_hidden_layers"]))
    )
    assert list(dict.fromkeys(after)) == list(dict.fromkeys(before))
    assert 2 <= len(after) <= len(before)
    assert small.config.keys() == config.keys()
    assert shrink(small.config).overrides == {}
    assert bool(small.overrides) == (small.config != config)


@pytest.mark.parametrize(
    "asked", [{"cudagraph_capture_sizes": [1]}, {"max_cudagraph_capture_size": 4}, 3, "text"]
)
def test_sizes_that_are_not_ours_are_not_said_to_be(asked: Any) -> None:
    given: dict[str, Any] = {"compilation_config": asked}
    small = shrink({"num_hidden_layers": 4}, given)
    assert small.arguments(given)["compilation_config"] == asked
    assert "compilation_config" not in " ".join(small.changes)
