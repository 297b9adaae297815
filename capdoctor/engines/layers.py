"""Which layers of a model are of which kind, and which few have every kind. Pure.

A config says it in many ways: lists with an entry a layer, lists of layer numbers, texts with a
letter a layer, thresholds, periods. Each contributes to a layer's *kind*; two layers are alike if
all of them agree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from capdoctor.model import Json

_FEWEST = 2
_IDS = re.compile(r"(_ids|_layers|_layer_indices|_layer_idx|layers_enum)$")
_PER_LAYER_DICT = re.compile(r"attn|attention|layer")
_EXTRA_ENTRIES = 4  # lists may also have entries for draft layers


@cache
def rules() -> dict[str, Any]:
    """Give the rules of ``layer_rules.toml``."""
    text = files("capdoctor.engines").joinpath("layer_rules.toml").read_text("utf-8")
    return tomllib.loads(text)


def depth_field(config: Mapping[str, Any]) -> str | None:
    """Give the name of the field that holds the number of layers."""
    return next((key for key in rules()["depth"] if _is_count(config.get(key))), None)


def kinds(config: Mapping[str, Any], depth: int) -> list[tuple[Any, ...]]:
    """Give the kind of each layer."""
    columns = list(_columns(config, depth))
    return [tuple(column[index] for column in columns) for index in range(depth)]


def kept_layers(config: Mapping[str, Any], depth: int) -> list[int]:
    """Give the numbers of the fewest layers that have every kind, in order, two at least.

    Where a kind repeats by the layer's number, only a front part keeps each layer's kind; else the
    first of each kind are picked, with the producer right before a layer that shares.
    """
    config = _completed(config)
    of = kinds(config, depth)
    firsts = sorted({of.index(kind) for kind in of})
    if _repeats(config):
        return list(range(min(depth, max(_FEWEST, firsts[-1] + 1))))
    picked = set(firsts)
    for index in firsts:
        picked |= _producer(config, index, depth)
    rest = (index for index in range(depth) if index not in picked)
    while len(picked) < min(_FEWEST, depth):
        picked.add(next(rest))
    return sorted(picked)


def _completed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the model's type takes for fields that are left out."""
    assumed = rules()["assumed"].get(config.get("model_type"), {})
    # Lists that say it layer by layer win over a period, so none is assumed beside them.
    listed = any(config.get(key) for key in ("layer_types", "no_rope_layers"))
    missing = {key: value for key, value in assumed.items() if config.get(key) is None}
    return {**config, **({} if listed else missing)}


def cut_fields(config: Mapping[str, Any], depth: int, kept: Sequence[int]) -> dict[str, Json]:
    """Give the fields that have to change when only ``kept`` layers stay."""
    cut: dict[str, Json] = {}
    for key, value in config.items():
        if _is_layer_list(value, depth) or _is_pattern(key, value):
            cut[key] = _pick(value, kept)
        elif _is_id_list(key, value, depth):
            cut[key] = _renumber(value, kept, first=0)
        elif isinstance(value, Mapping) and _PER_LAYER_DICT.search(key):
            cut |= _cut_inner(key, value, depth, kept)
        elif key in rules()["thresholds"] and _is_count(value):
            cut[key] = sum(index < value for index in kept)
        elif key in rules()["last"] and _is_count(value):
            cut[key] = sum(index >= depth - value for index in kept)
    return {key: value for key, value in cut.items() if value != config[key]}


def _cut_inner(
    key: str, value: Mapping[str, Any], depth: int, kept: Sequence[int]
) -> dict[str, Json]:
    """Cut the lists of an inner mapping; given whole, since not every release merges."""
    inner = {
        name: _renumber(item, kept, first=_first_number(value, depth))
        for name, item in value.items()
        if _is_id_list(name, item, depth)
    }
    return {key: {**value, **inner}} if inner else {}


def _columns(config: Mapping[str, Any], depth: int) -> Iterator[Sequence[Any]]:
    """Give what each field of the config says about each layer."""
    for key, value in config.items():
        if _is_layer_list(value, depth) or _is_pattern(key, value):
            yield [_hashable(value[i]) if i < len(value) else None for i in range(depth)]
        elif key in rules()["thresholds"] and _is_count(value):
            yield [index < value for index in range(depth)]
        elif key in rules()["last"] and _is_count(value):
            yield [index >= depth - value for index in range(depth)]
    for numbers in _id_lists(config, depth):
        yield [index in numbers for index in range(depth)]
    for rule in rules()["period"]:
        if _is_count(config.get(rule["field"])):
            yield [_on_beat(config, rule, index) for index in range(depth)]


def _id_lists(config: Mapping[str, Any], depth: int) -> Iterator[set[int]]:
    """Give the lists of layer numbers, inner ones too, as counted from 0."""
    for key, value in config.items():
        if _is_layer_list(value, depth):
            continue  # one entry a layer, whatever its name: of flags, not of numbers
        if _is_id_list(key, value, depth):
            yield set(_numbers(value))
        elif isinstance(value, Mapping) and _PER_LAYER_DICT.search(key):
            first = _first_number(value, depth)
            for name, item in value.items():
                if _is_id_list(name, item, depth):
                    yield {number - first for number in _numbers(item)}


def _on_beat(config: Mapping[str, Any], rule: Mapping[str, Any], index: int) -> bool:
    offset = config.get(rule.get("offset_field", ""), rule.get("offset", 0))
    step = index + int(rule["shift"]) - int(offset or 0)
    step = max(step, 0) if rule.get("clipped") else step
    return bool(step % config[rule["field"]] == 0)


def _repeats(config: Mapping[str, Any]) -> bool:
    periods = [config.get(rule["field"]) for rule in rules()["period"]]
    return any(period > 1 for period in periods if isinstance(period, int))


def _producer(config: Mapping[str, Any], index: int, depth: int) -> set[int]:
    """Give the layer whose result a sharing layer uses: the last before it that does not share."""
    found = set()
    for key, value in config.items():
        if not (_is_layer_list(value, depth) or _is_pattern(key, value)):
            continue
        if _shares(value, index):
            found |= {max((i for i in range(index) if not _shares(value, i)), default=0)}
    return found


def _shares(values: Sequence[Any], index: int) -> bool:
    return index < len(values) and values[index] in rules()["shared"]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_layer_list(value: Any, depth: int) -> bool:
    return isinstance(value, list) and depth <= len(value) <= depth + _EXTRA_ENTRIES and depth > 1


def _is_pattern(key: str, value: Any) -> bool:
    return key in rules()["patterns"] and isinstance(value, str)


def _is_id_list(key: str, value: Any, depth: int) -> bool:
    if isinstance(value, str) and key.endswith("layers_enum"):
        return bool(re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", value))
    if not isinstance(value, list) or not value or not _IDS.search(key):
        return False
    return all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= depth for n in value)


def _first_number(inner: Mapping[str, Any], depth: int) -> int:
    """Say whether the lists of an inner mapping count layers from 0 or from 1."""
    numbers = {
        n for key, item in inner.items() if _is_id_list(key, item, depth) for n in _numbers(item)
    }
    return 1 if depth in numbers and 0 not in numbers else 0


def _pick(value: Any, kept: Sequence[int]) -> Json:
    if isinstance(value, str):
        return "".join(value[index] for index in kept if index < len(value))
    return [value[index] for index in kept]


def _renumber(value: Any, kept: Sequence[int], *, first: int) -> Json:
    place = {old + first: new + first for new, old in enumerate(kept)}
    if isinstance(value, str):
        return ",".join(str(place[n]) for n in _numbers(value) if n in place)
    return [place[n] for n in value if n in place]


def _numbers(value: Any) -> list[int]:
    """Give layer numbers that stand in a list or in a text with commas."""
    return [int(part) for part in value.split(",")] if isinstance(value, str) else list(value)


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else value
