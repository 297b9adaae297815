"""A model's config cut down to the fewest layers that still have every kind of layer. Pure.

Widths stay as they are (head counts and sizes, LoRA ranks, hidden size), because kernels and
attention backends are chosen by them. What goes is depth, experts, draft layers, and the number of
sequences and graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capdoctor.engines.asked import Asked
from capdoctor.engines.fewer_experts import experts_field, fewer_experts
from capdoctor.engines.layer_fields import is_count, rules
from capdoctor.engines.layers import cut_fields, depth_field, depth_of, kept_layers
from capdoctor.engines.nested import differences, merged, replaced, without
from capdoctor.engines.quantized_layers import has_patterns_with_numbers, renamed, treatment
from capdoctor.model import Json

_COMPILATION = "compilation_config"
_QUANTIZATION = "quantization_config"
_DRAFT_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
_STACK_LAYERS = 2
_LONGEST_TEXT = 60
_MOST_ENTRIES = 12
_LONGEST_SEQUENCE = 2048
_SEQUENCES = 8
# Of a smaller engine too, but only where the release knows it: those before 0.17 may not.
SMALLER: Mapping[str, Json] = {"enable_flashinfer_autotune": False}
_CAPTURE_SIZES: Sequence[int] = (1, 2, 4, 8)
_BY_NUMBER = "all layers stay: the draft model may take what they give, by their numbers"
_PATTERNS = (
    "quantization_config: patterns with the numbers of layers are left as they are, so that other"
    " layers than in the full model may be quantised"
)
_UNKNOWN = "no field that holds the number of layers is known in this config: it is left as it is"


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A smaller model: ``config`` whole, ``overrides`` what differs in it from the full one.

    ``engine_args`` is for the engine, where the user gave nothing. ``changes`` says in sentences
    what became of what. ``quantization`` is the quantisation config of a file of its own.
    """

    config: Mapping[str, Json]
    overrides: Mapping[str, Json]
    engine_args: Mapping[str, Json]
    changes: tuple[str, ...] = field(default=())
    quantization: Mapping[str, Json] | None = None

    def arguments(self, given: Mapping[str, Json]) -> dict[str, Json]:
        """Give all arguments of an engine that reads `config`: what the user gave wins.

        ``hf_overrides`` loses what `config` holds already, in its cut form.
        """
        arguments = {**self.engine_args, **given}
        mine, asked = self.engine_args.get(_COMPILATION), given.get(_COMPILATION)
        if isinstance(mine, dict) and isinstance(asked, dict):
            arguments[_COMPILATION] = merged(mine, asked)
        overrides = without(_mapping(given.get("hf_overrides")), self.overrides)
        if overrides:
            return {**arguments, "hf_overrides": overrides}
        return {key: value for key, value in arguments.items() if key != "hf_overrides"}


@dataclass(frozen=True, slots=True)
class _Cut:
    """What changes in a config, and which of how many layers of its language model stay."""

    overrides: dict[str, Json]
    depth: int | None = None
    kept: Sequence[int] = ()


def shrink(
    config: Mapping[str, Any],
    given: Mapping[str, Json] | None = None,
    quantization: Mapping[str, Any] | None = None,
) -> Shrunk:
    """Cut a ``config.json`` down; arguments in ``given`` are the user's and are left alone.

    Their ``hf_overrides`` describe the model too: a depth or a number of experts that they set
    stays. ``quantization`` is what a model has in a file of its own.
    """
    given = given or {}
    asked = Asked.of(given)
    full = merged(config, asked.overrides)
    cut = _nest(full, asked, quantization)
    engine_args, said = _small_engine(full, given)
    changes = [] if cut.depth is not None or cut.overrides else [_UNKNOWN]
    changes += [_BY_NUMBER] if asked.by_number else []
    changes += [_sentence(*change) for change in differences(full, cut.overrides)]
    if cut.overrides and any(map(has_patterns_with_numbers, (full, quantization))):
        changes.append(_PATTERNS)
    own = renamed(quantization, cut.depth, cut.kept) if quantization and cut.depth else None
    small = replaced(full, cut.overrides, rules()["nested"])
    return Shrunk(small, cut.overrides, engine_args, tuple(changes + said), own)


def _nest(config: Mapping[str, Any], asked: Asked, outer: Mapping[str, Any] | None) -> _Cut:
    """Shrink a config and the language models inside it: an omni model nests them two deep.

    ``outer`` is the quantisation config of what is around this config.
    """
    own = config.get(_QUANTIZATION)
    names = own if isinstance(own, Mapping) else outer
    cut = _level(config, asked, names)
    for key in rules()["nested"]:
        nested = config.get(key)
        if isinstance(nested, Mapping):
            inner = _nest(nested, asked.inside(key), names)
            found = cut if cut.depth is not None else inner
            more = {key: dict(inner.overrides)} if inner.overrides else {}
            cut = _Cut({**cut.overrides, **more}, found.depth, found.kept)
    if isinstance(own, Mapping) and cut.depth is not None:
        named = renamed(own, cut.depth, cut.kept)
        if named != own:
            cut.overrides[_QUANTIZATION] = named
    return cut


def _level(config: Mapping[str, Any], asked: Asked, names: Mapping[str, Any] | None) -> _Cut:
    """Shrink one config, without what is nested in it."""
    cut = _fewer_layers(config, asked, names or {})
    overrides = {**_fewer_stacks(config, asked), **cut.overrides}
    overrides |= _fewer_experts(config, asked)
    if not asked.drafts:
        gone = {key: 0 for key in _DRAFT_LAYERS if config.get(key) and key not in asked.overrides}
        overrides |= gone
    return _Cut(overrides, cut.depth, cut.kept)


def _fewer_experts(config: Mapping[str, Any], asked: Asked) -> dict[str, Json]:
    """Cut the experts of a config, and of a part of it that describes the layers' networks."""
    found: dict[str, Json] = {}
    if experts_field(config) not in asked.overrides:
        found |= fewer_experts(config, asked.ranks)
    for key in rules()["networks"]:
        part = config.get(key)
        fewer = fewer_experts(part, asked.ranks) if isinstance(part, Mapping) else {}
        if fewer and key not in asked.overrides:
            found[key] = {**part, **fewer}  # type: ignore[dict-item]
    return found


def _fewer_layers(config: Mapping[str, Any], asked: Asked, names: Mapping[str, Any]) -> _Cut:
    name, depth = depth_field(config), depth_of(config)
    if depth is None:
        return _Cut({})
    kept: Sequence[int] = range(depth)
    if name not in asked.overrides and not asked.by_number:
        kept = kept_layers(config, depth, [treatment(names, depth)])
    if len(kept) >= depth:
        return _Cut({}, depth, range(depth))
    cut = cut_fields(config, depth, kept, tail=asked.drafts)
    return _Cut({**({name: len(kept)} if name else {}), **cut}, depth, kept)


def _fewer_stacks(config: Mapping[str, Any], asked: Asked) -> dict[str, Json]:
    """Cut the stacks of an encoder and a decoder, each of layers that are alike."""
    stacks = [key for key in rules()["stacks"] if is_count(config.get(key))]
    return {
        key: _STACK_LAYERS
        for key in stacks
        if len(stacks) > 1 and config[key] > _STACK_LAYERS and key not in asked.overrides
    }


def _small_engine(
    config: Mapping[str, Any], given: Mapping[str, Json]
) -> tuple[dict[str, Json], list[str]]:
    longest = _longest(config) or _LONGEST_SEQUENCE
    arguments: dict[str, Json] = {
        "max_model_len": min(_LONGEST_SEQUENCE, longest),
        "max_num_seqs": _SEQUENCES,
        _COMPILATION: {"cudagraph_capture_sizes": list(_CAPTURE_SIZES)},
    }
    left = {_COMPILATION} if _sizes_left(given.get(_COMPILATION, {})) else set()
    arguments = {key: value for key, value in arguments.items() if key not in given or key in left}
    return arguments, [f"engine: {key}={_short(value)}" for key, value in arguments.items()]


def _longest(config: Mapping[str, Any]) -> int | None:
    """Give the longest text that the model takes, under whichever of its two names."""
    for key in ("max_position_embeddings", "max_target_positions"):
        if is_count(config.get(key)):
            return int(config[key])
    nests = (config.get(key) for key in rules()["nested"])
    found: Iterator[int | None] = (_longest(nest) for nest in nests if isinstance(nest, Mapping))
    return next((length for length in found if length is not None), None)


def _sizes_left(compilation: Json) -> bool:
    """Say whether the sizes to capture can be put beside what is asked of the compilation."""
    return isinstance(compilation, dict) and not any("capture_size" in key for key in compilation)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sentence(path: str, before: Any, after: Any) -> str:
    if isinstance(before, (list, dict)) and len(before) > _MOST_ENTRIES:
        return f"{path}: {len(before)} entries -> {_short(after)}"
    return f"{path}: {_short(before)} -> {_short(after)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
