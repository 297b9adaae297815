"""A model's config cut down to the fewest layers that still have every kind of layer. Pure.

Widths stay as they are (head counts and sizes, LoRA ranks, hidden size), because kernels and
attention backends are chosen by them. What goes is depth, experts, draft layers, and the number of
sequences and graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capdoctor.engines.layers import cut_fields, depth_field, kept_layers
from capdoctor.model import Json

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_PER_TOKEN = ("num_experts_per_tok", "moe_topk", "num_experts_per_token", "top_k")
_GROUPS = "n_group"
_TOP_GROUPS = "topk_group"
_DRAFT_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
_MOST_EXPERTS = 8
_LONGEST_TEXT = 60
_SMALL_ENGINE: Mapping[str, Json] = {"max_model_len": 2048, "max_num_seqs": 8}
_CAPTURE_SIZES: Sequence[int] = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A smaller model: ``overrides`` for its config, ``engine_args`` for the engine.

    ``changes`` says in sentences what became of what.
    """

    overrides: Mapping[str, Json]
    engine_args: Mapping[str, Json]
    changes: tuple[str, ...] = field(default=())

    def merged(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """Give ``hf_overrides`` and ``compilation_config`` with what the user gave on top."""
        merged: dict[str, Json] = {}
        overrides = given.get("hf_overrides")
        if self.overrides:
            merged["hf_overrides"] = _deep(self.overrides, _mapping(overrides))
        compilation = self.engine_args.get("compilation_config")
        if isinstance(compilation, dict) and "compilation_config" in given:
            asked = given["compilation_config"]
            mine = {} if _sizes_asked(asked) else compilation
            merged["compilation_config"] = _deep(mine, asked) if isinstance(asked, dict) else asked
        return merged


def shrink(config: Mapping[str, Any], given: Mapping[str, Json] | None = None) -> Shrunk:
    """Cut a ``config.json`` down; arguments in ``given`` are the user's and are left alone."""
    overrides, changes = _shrink_nest(config, "")
    engine_args, said = _small_engine(config, given or {})
    return Shrunk(overrides, engine_args, tuple(changes + said))


def _shrink_nest(config: Mapping[str, Any], prefix: str) -> tuple[dict[str, Json], list[str]]:
    """Shrink a config and the language models inside it: an omni model nests them two deep."""
    overrides, changes = _shrink_config(config, prefix)
    for key in _NESTED:
        nested = config.get(key)
        if isinstance(nested, Mapping):
            inner, said = _shrink_nest(nested, f"{prefix}{key}.")
            if inner:
                overrides[key] = inner
                changes += said
    return overrides, changes


def _shrink_config(config: Mapping[str, Any], prefix: str) -> tuple[dict[str, Json], list[str]]:
    overrides: dict[str, Json] = {}
    overrides |= _fewer_layers(config)
    overrides |= _fewer_experts(config)
    overrides |= {key: 0 for key in _DRAFT_LAYERS if config.get(key)}
    changes = [
        f"{prefix}{key}: {_short(config[key])} -> {_short(overrides[key])}" for key in overrides
    ]
    return overrides, changes


def _fewer_layers(config: Mapping[str, Any]) -> dict[str, Json]:
    field_name = depth_field(config)
    if field_name is None:
        return {}
    depth = config[field_name]
    kept = kept_layers(config, depth)
    if len(kept) >= depth:
        return {}
    return {field_name: len(kept), **cut_fields(config, depth, kept)}


def _fewer_experts(config: Mapping[str, Any]) -> dict[str, Json]:
    """Keep enough experts for the router: a multiple of its groups, and more than are chosen."""
    key = next((key for key in _EXPERTS if isinstance(config.get(key), int)), None)
    if key is None:
        return {}
    chosen = max(
        (config[name] for name in _PER_TOKEN if isinstance(config.get(name), int)), default=1
    )
    groups = config.get(_GROUPS) or 1
    per_group = -(-max(_MOST_EXPERTS, chosen) // groups)
    top_groups = config.get(_TOP_GROUPS) or 1
    while per_group * top_groups < chosen:
        per_group += 1
    wanted = max(2, per_group) * groups if groups > 1 else per_group
    return {key: wanted} if wanted < config[key] else {}


def _small_engine(
    config: Mapping[str, Any], given: Mapping[str, Json]
) -> tuple[dict[str, Json], list[str]]:
    arguments: dict[str, Json] = {
        key: value for key, value in _SMALL_ENGINE.items() if key not in given
    }
    longest = _longest(config)
    length = arguments.get("max_model_len")
    if longest is not None and isinstance(length, int):
        arguments["max_model_len"] = min(length, longest)
    arguments["compilation_config"] = {"cudagraph_capture_sizes": list(_CAPTURE_SIZES)}
    arguments["enable_flashinfer_autotune"] = False
    arguments = {
        key: value
        for key, value in arguments.items()
        if key not in given or key == "compilation_config"
    }
    return arguments, [f"engine: {key}={_short(value)}" for key, value in arguments.items()]


def _longest(config: Mapping[str, Any]) -> int | None:
    value = config.get("max_position_embeddings")
    if isinstance(value, int):
        return value
    nests = (config.get(key) for key in _NESTED)
    found = (_longest(nest) for nest in nests if isinstance(nest, Mapping))
    return next((length for length in found if length is not None), None)


def _sizes_asked(compilation: Json) -> bool:
    return isinstance(compilation, dict) and any("capture_size" in key for key in compilation)


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _deep(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """Merge two nested mappings; ``above`` wins."""
    merged = dict(below)
    for key, value in above.items():
        mine = merged.get(key)
        both = isinstance(mine, dict) and isinstance(value, dict)
        merged[key] = _deep(_mapping(mine), _mapping(value)) if both else value
    return merged


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
