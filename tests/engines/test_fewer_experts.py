"""How few experts are enough."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.fewer_experts import fewer_experts


@pytest.mark.parametrize(
    ("config", "experts"),
    [
        pytest.param({"n_routed_experts": 256, "num_experts_per_tok": 8}, 8, id="one group"),
        pytest.param(
            {"n_routed_experts": 256, "num_experts_per_tok": 8, "n_group": 8, "topk_group": 4},
            16,
            id="two in each group",
        ),
        pytest.param({"num_experts": 512, "num_experts_per_tok": 22}, 32, id="a power of two"),
        pytest.param({"num_experts": 72, "num_experts_per_tok": 10}, 10, id="none before"),
        pytest.param({"num_experts": 896, "num_experts_per_token": 16, "top_k": 50}, 16, id="kimi"),
        pytest.param({"num_experts": 64, "top_k": 12}, 16, id="nothing else says it"),
        pytest.param({"num_experts": 64, "moe_topk": [8, 12]}, 16, id="layers differ"),
        pytest.param({"num_experts": 128, "top_k_experts": 8}, 8, id="gemma 4"),
        pytest.param({"num_local_experts": 128}, 8, id="the router is not described"),
    ],
)
def test_enough_experts_stay(config: dict[str, Any], experts: int) -> None:
    assert list(fewer_experts(config).values()) == [experts]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"num_local_experts": 8, "num_experts_per_tok": 2},
        {"num_experts": None, "top_k_experts": None},
        {"num_experts": 0},
        {"moe_num_experts": [64, 64], "num_experts_per_tok": 6},
        {"num_experts": True},
    ],
)
def test_dense_and_small_models_and_unknown_forms_stay(config: dict[str, Any]) -> None:
    assert fewer_experts(config) == {}


def test_ranks_that_share_the_experts_have_equal_numbers() -> None:
    config = {"num_experts": 100, "num_experts_per_tok": 8}
    assert fewer_experts(config, ranks=6) == {"num_experts": 12}
    assert fewer_experts({"num_experts": 128, "num_experts_per_tok": 8}, ranks=16) == {
        "num_experts": 16
    }


@given(st.integers(1, 1024), st.integers(1, 32), st.sampled_from([1, 2, 4, 8]), st.integers(1, 8))
def test_the_router_works_and_nothing_grows(
    experts: int, chosen: int, groups: int, top_groups: int
) -> None:
    config = {
        "n_routed_experts": experts * groups,
        "num_experts_per_tok": chosen,
        "n_group": groups,
        "topk_group": min(top_groups, groups),
    }
    found = fewer_experts(config)
    if not found:
        return
    fewer = int(str(found["n_routed_experts"]))
    assert fewer < experts * groups
    assert fewer % groups == 0
    assert fewer // groups * min(top_groups, groups) >= chosen
    assert fewer_experts({**config, "n_routed_experts": fewer}) == {}
