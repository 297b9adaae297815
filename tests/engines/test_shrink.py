"""Configs cut down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    assert "max_model_len" not in small.engine_args
    merged: Any = small.merged(given)
    assert merged["hf_overrides"]["num_hidden_layers"] == 5
    assert merged["hf_overrides"]["n_routed_experts"] == 16
    assert merged["compilation_config"] == {
        "cudagraph_mode": "FULL",
        "cudagraph_capture_sizes": [1, 2, 4, 8],
    }


def test_graph_sizes_that_the_user_asked_for_are_not_mixed_with_ours() -> None:
    given: dict[str, Any] = {"compilation_config": {"max_cudagraph_capture_size": 64}}
    assert shrink(DEEPSEEK, given=given).merged(given)["compilation_config"] == {
        "max_cudagraph_capture_size": 64
    }


def test_the_language_model_of_an_omni_model_lies_two_deep() -> None:
    text = {"num_hidden_layers": 48, "num_experts": 128, "max_position_embeddings": 512}
    small = shrink({"thinker_config": {"text_config": text, "audio_config": {"num_layers": 9}}})
    assert small.overrides == {
        "thinker_config": {"text_config": {"num_hidden_layers": 2, "num_experts": 8}}
    }
    assert small.engine_args["max_model_len"] == 512
    assert "thinker_config.text_config.num_hidden_layers: 48 -> 2" in small.changes
