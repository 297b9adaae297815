"""Configs that no model has: whatever stands in one, cutting it down ends, soon, and in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.layer_fields import rules
from capdoctor.engines.shrink import shrink
from capdoctor.engines.shrink_effects import expected

CONFIGS = Path(__file__).parents[1] / "data/configs"
REAL = [json.loads(path.read_text()) for path in sorted(CONFIGS.glob("*.json"))]
TOO_DEEP = 10**9
LONG_NUMBER = "9" * 5000  # Python refuses to read it as a number
ODD = [None, True, 0, -1, 1.5, float("nan"), "", "32", "1,2", [], {}, [[1]], [{}], 2**70]
ODD += [TOO_DEEP, LONG_NUMBER, f"1,{LONG_NUMBER}", {"layers": [1]}, [f"layers.{LONG_NUMBER}"]]
FIELDS = sorted({key for config in REAL for key in config} | {*rules()["nested"], "n_group"})
ASKED: list[dict[str, Any]] = [
    {},
    {"enable_expert_parallel": True, "tensor_parallel_size": 0},
    {"enable_expert_parallel": True, "tensor_parallel_size": "2"},
    {"hf_overrides": "text", "compilation_config": 3},
    {"speculative_config": {"method": ["mtp"]}},
]


@given(
    st.sampled_from(REAL),
    st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(ODD), max_size=4),
    st.booleans(),
    st.sampled_from(ASKED),
)
def test_any_value_in_any_field_is_survived(
    real: dict[str, Any], odd: dict[str, Any], inside: bool, asked: dict[str, Any]
) -> None:
    inner = next((key for key in rules()["nested"] if isinstance(real.get(key), dict)), None)
    config = {**real, inner: {**real[inner], **odd}} if inside and inner else {**real, **odd}
    small = shrink(config, asked)
    assert json.dumps(dict(small.config))
    assert small.changes
    expected(config, small.config, 1)


@pytest.mark.parametrize("field", rules()["depth"])
def test_a_depth_that_no_model_has_is_not_believed(field: str) -> None:
    small = shrink({field: TOO_DEEP, "hidden_size": 64})
    assert small.overrides == {}
    assert "no field that holds the number of layers" in small.changes[0]


@pytest.mark.parametrize("odd", ["2", [2], {"a": 2}, -1, 2.0, True])
@pytest.mark.parametrize("field", ["n_group", "topk_group"])
def test_expert_groups_that_are_no_number_count_as_one(field: str, odd: Any) -> None:
    config = {"num_hidden_layers": 4, "n_routed_experts": 64, field: odd}
    assert shrink(config).config["n_routed_experts"] == 8
