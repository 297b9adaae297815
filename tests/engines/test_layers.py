"""Kinds of layers, and the few that have them all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.layers import cut_fields, depth_field, depth_of, kept_layers, kinds

HYBRID = ["linear", "linear", "linear", "full"] * 12


@pytest.mark.parametrize(
    ("config", "depth", "kept"),
    [
        pytest.param({}, 32, [0, 1], id="all layers alike"),
        pytest.param({}, 1, [0], id="one layer is all there is"),
        pytest.param({"layer_types": HYBRID}, 48, [0, 3], id="hybrid by a list"),
        pytest.param({"first_k_dense_replace": 3}, 61, [0, 3], id="dense first, then MoE"),
        pytest.param({"full_attention_interval": 4}, 48, [0, 1, 2, 3], id="hybrid by a period"),
        pytest.param({"decoder_sparse_step": 1}, 24, [0, 1], id="a period of one is none"),
        pytest.param(
            {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2},
            32,
            [0, 1, 2, 3, 4],
            id="two periods with an offset",
        ),
        pytest.param(
            {"indexer_types": (["full"] + ["shared"] * 3) * 10},
            40,
            [0, 1],
            id="a producer and its follower",
        ),
        pytest.param(
            {
                "indexer_types": ["full", "full", "shared"] * 10,
                "mlp_layer_types": ["d"] + ["s"] * 29,
            },
            30,
            [0, 1, 2],
            id="the follower's own producer stays, right before it",
        ),
        pytest.param(
            {"index_topk_pattern": "FFSSFSS" * 4}, 28, [0, 1, 2], id="a pattern of letters"
        ),
        pytest.param({"index_topk_freq": 4}, 61, [0, 1, 2], id="a frequency with its own offset"),
        pytest.param(
            {"linear_attn_config": {"kda_layers": [1, 2, 3, 5, 6, 7], "full_attn_layers": [4, 8]}},
            8,
            [0, 3],
            id="inner lists that count from one",
        ),
        pytest.param(
            {"model_type": "gemma3_text", "sliding_window": 1024},
            34,
            [0, 1, 2, 3, 4, 5],
            id="a period that only the model type knows",
        ),
        pytest.param(
            {"model_type": "gemma3_text", "layer_types": (["s"] * 5 + ["f"]) * 5},
            30,
            [0, 5],
            id="a list wins over what the type knows",
        ),
        pytest.param(
            {"model_type": "llama4_text", "no_rope_layers": [], "interleave_moe_layer_step": 1},
            48,
            [0, 1, 2, 3],
            id="an empty list leaves it to the type",
        ),
        pytest.param(
            {
                "model_type": "llama4_text",
                "no_rope_layers": [1, 1, 1, 0] * 12,
                "interleave_moe_layer_step": 2,
            },
            48,
            [0, 1, 2, 3],
            id="flags a layer whose name looks like layer numbers",
        ),
        pytest.param({"model_type": "jamba"}, 32, [0, 1, 2, 3, 4], id="nothing but the type"),
        pytest.param({"mlp_only_layers": [5]}, 12, [0, 5], id="a list of layer numbers"),
        pytest.param({"moe_layers_enum": "4,5,6"}, 7, [0, 4], id="layer numbers in a text"),
        pytest.param({"num_kv_shared_layers": 15}, 35, [0, 20], id="counted from the end"),
        pytest.param({"hybrid_override_pattern": "M-M*M-E"}, 7, [0, 1, 3, 6], id="nemotron"),
        pytest.param(
            {"layer_types": HYBRID, "full_attention_interval": 4}, 48, [0, 3], id="a list says it"
        ),
        pytest.param(
            {"sparse": {"sparse_freq": [0, 0, 1, 1, 1, 1]}}, 6, [0, 2], id="a list one deeper"
        ),
        pytest.param(
            {"moe_layers": [0, 1, 2, 3, 4, 5]}, 6, [0, 1], id="numbers of all layers, not kinds"
        ),
        pytest.param({"full_attn_idxs": [2, 5]}, 8, [0, 2], id="lfm2"),
        pytest.param({"attn_layer_indices": [9, 18]}, 32, [0, 9], id="bamba"),
        pytest.param(
            {"moe_layer_start_index": 1, "moe_layer_end_index": 8},
            12,
            [0, 1, 9],
            id="a last layer of a kind",
        ),
        pytest.param({"layer_group_size": 4}, 16, [0, 1, 2, 3], id="the last of a group"),
        pytest.param({"attn_res_block_size": 6}, 18, [0, 1], id="the first of a group"),
        pytest.param(
            {"layer_types": ["s", "f"] * 6, "num_kv_shared_layers": 4},
            12,
            [0, 1, 8, 9],
            id="sharing layers of two types, and the producer of each",
        ),
        pytest.param({"eos_token_ids": [1, 2, 3]}, 40, [0, 1], id="token ids are no layers"),
        pytest.param({"suppress_tokens": list(range(12))}, 12, [0, 1], id="nor are tokens"),
        pytest.param(
            {"vision": {"layer_types": ["a", "b"] * 6}}, 12, [0, 1], id="nor a tower's layers"
        ),
        pytest.param({"rope_scaling": {"factors": list(range(9))}}, 9, [0, 1], id="nor factors"),
    ],
)
def test_every_kind_of_layer_is_kept(config: dict[str, Any], depth: int, kept: list[int]) -> None:
    assert kept_layers(config, depth) == kept


@pytest.mark.parametrize(
    ("config", "depth", "cut"),
    [
        ({"layer_types": HYBRID}, 48, {"layer_types": ["linear", "full"]}),
        ({"first_k_dense_replace": 3}, 61, {"first_k_dense_replace": 1}),
        ({"index_topk_pattern": "FFSSFSS"}, 7, {"index_topk_pattern": "FFS"}),
        ({"mlp_only_layers": [0, 5, 7]}, 12, {"mlp_only_layers": [0]}),
        ({"moe_layers_enum": "4,5,6"}, 7, {"moe_layers_enum": "1"}),
        ({"num_kv_shared_layers": 15}, 35, {"num_kv_shared_layers": 1}),
        ({"hidden_size": 7168, "rope_theta": 10000}, 61, {}),
        ({"full_attn_idxs": [2, 5]}, 8, {"full_attn_idxs": [1]}),
        ({"moe_layer_end_index": 11}, 12, {"moe_layer_end_index": 1}),
        ({"eos_token_ids": [1, 2, 3]}, 40, {}),
        (
            {"sparse": {"freq": [0, 0, 1], "topk": 5}},
            3,
            {"sparse": {"freq": [0, 1], "topk": 5}},
        ),
        ({"layer_types": ["a", "b", "mtp"]}, 2, {"layer_types": ["a", "b"]}),
        (
            {
                "linear_attn_config": {
                    "head_dim": 128,
                    "kda_layers": [1, 2, 3],
                    "full_attn_layers": [4],
                }
            },
            4,
            {"linear_attn_config": {"head_dim": 128, "kda_layers": [1], "full_attn_layers": [2]}},
        ),
    ],
)
def test_fields_are_cut_to_the_layers_that_stay(
    config: dict[str, Any], depth: int, cut: dict[str, Any]
) -> None:
    assert cut_fields(config, depth, kept_layers(config, depth)) == cut


TYPES = st.lists(st.sampled_from(["full", "linear", "sliding", "shared"]), min_size=2, max_size=40)


@given(TYPES, st.integers(0, 5), st.sampled_from([None, 1, 2, 3, 5]))
def test_no_kind_is_lost_and_none_is_made_up(
    types: list[str], dense: int, period: int | None
) -> None:
    config: dict[str, Any] = {"layer_types": types, "first_k_dense_replace": dense}
    if period is not None:
        config["decoder_sparse_step"] = period
    depth = len(types)
    kept = kept_layers(config, depth)
    small = {**config, **cut_fields(config, depth, kept)}
    assert set(kinds(small, len(kept))) == set(kinds(config, depth))
    assert kept == sorted(set(kept))
    assert len(small["layer_types"]) == len(kept) >= 2


@pytest.mark.parametrize(
    ("config", "field"),
    [({"num_hidden_layers": 2}, "num_hidden_layers"), ({"n_layer": 2}, "n_layer"), ({}, None)],
)
def test_the_depth_has_several_names(config: dict[str, Any], field: str | None) -> None:
    assert depth_field(config) == field


@pytest.mark.parametrize(
    ("config", "depth"),
    [
        ({"num_hidden_layers": 7, "layers_block_type": ["mamba"] * 9}, 7),
        ({"layers_block_type": ["mamba"] * 9}, 9),
        ({"hybrid_override_pattern": "M-M*"}, 4),
        ({"layer_types": []}, None),
        ({"num_hidden_layers": True}, None),
        ({"num_hidden_layers": -1}, None),
        ({}, None),
    ],
)
def test_a_list_of_all_layers_tells_how_many_they_are(
    config: dict[str, Any], depth: int | None
) -> None:
    assert depth_of(config) == depth


@given(st.lists(st.sampled_from([None, 512, 4096]), min_size=1, max_size=5), st.integers(1, 24))
def test_a_list_that_is_gone_through_again_and_again_keeps_its_meaning(
    windows: list[Any], depth: int
) -> None:
    config = {"num_hidden_layers": depth, "interleaved_sliding_window": windows}
    kept = kept_layers(config, depth)
    left = cut_fields(config, depth, kept).get("interleaved_sliding_window", windows)
    assert isinstance(left, list)
    built = [left[index % len(left)] for index in range(len(kept))]
    full = [windows[index % len(windows)] for index in range(depth)]
    assert built == full[: len(kept)]
    assert set(built) == set(full)
