"""How few experts a mixture-of-experts layer can do with. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capdoctor.engines.layer_fields import is_count
from capdoctor.model import Json

_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "moe_k",
)
_GENERATION_OR_EXPERTS = "top_k"  # in most configs a setting of text generation
_FEWEST = 8
_FEWEST_PER_GROUP = 2  # a group is judged by the sum of its best two


def experts_field(config: Mapping[str, Any]) -> str | None:
    """Give the name of the field that holds the number of routed experts."""
    return next((key for key in _EXPERTS if is_count(config.get(key))), None)


def fewer_experts(config: Mapping[str, Any], ranks: int = 1) -> dict[str, Json]:
    """Give the field to change: enough experts for the router, and whole groups on every rank.

    A power of two stays one, since routing kernels are specialised on it. ``ranks`` is how many
    ranks share the experts (1: every rank has all of them).
    """
    key = experts_field(config)
    if key is None:
        return {}
    chosen, groups = _chosen(config), _count(config.get("n_group"))
    per_group = -(-max(_FEWEST, chosen) // groups)
    if groups > 1:
        used = _count(config.get("topk_group"))
        per_group = max(per_group, _FEWEST_PER_GROUP, -(-chosen // used))
    wanted = per_group * groups
    if _is_power_of_two(config[key]):
        wanted = 1 << (wanted - 1).bit_length()
    wanted = -(-wanted // _count(ranks)) * _count(ranks)
    return {key: wanted} if wanted < config[key] else {}


def _chosen(config: Mapping[str, Any]) -> int:
    """Give how many experts a token goes to: the most, where layers differ."""
    found = [number for key in _PER_TOKEN for number in _counts(config.get(key))]
    return max(found or _counts(config.get(_GENERATION_OR_EXPERTS)), default=1)


def _count(value: Any) -> int:
    """Give a number above 0 as it is; 1 for anything else, which is the engine's to refuse."""
    return int(value) if is_count(value) else 1


def _counts(value: Any) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [number for number in values if is_count(number)]


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
