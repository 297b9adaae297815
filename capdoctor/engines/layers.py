"""Which layers of a model are of which kind, and which few have every kind. Pure.

A config says it in many ways: lists with an entry a layer, lists of layer numbers, texts with a
letter a layer, thresholds, periods. Each contributes to a layer's *kind*; two layers are alike if
all of them agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from capdoctor.engines.layer_fields import (
    LayerField,
    id_lists,
    is_count,
    layer_lists,
    numbers,
    rules,
)
from capdoctor.model import Json

_FEWEST = 2
_MOST = 10_000  # no model has as many; a number beyond is a mistake, and costs memory to look at
Column = Sequence[Any]


def depth_field(config: Mapping[str, Any]) -> str | None:
    """Give the name of the field that holds the number of layers, if it is one to believe."""
    return next((key for key in rules()["depth"] if _is_depth(config.get(key))), None)


def _is_depth(value: Any) -> bool:
    return is_count(value) and int(value) <= _MOST


def depth_of(config: Mapping[str, Any]) -> int | None:
    """Give the number of layers: as a field has it, else the length of a list of all layers."""
    name = depth_field(config)
    if name is not None:
        return int(config[name])
    lists = (config.get(key) for key in rules()["depth_lists"])
    return next((len(found) for found in lists if isinstance(found, (list, str)) and found), None)


def kinds(
    config: Mapping[str, Any], depth: int, more: Sequence[Column] = ()
) -> list[tuple[Any, ...]]:
    """Give the kind of each layer; ``more`` are columns that the config itself does not have."""
    columns = [*_columns(_completed(config), depth), *more]
    return [tuple(column[index] for column in columns) for index in range(depth)]


def kept_layers(config: Mapping[str, Any], depth: int, more: Sequence[Column] = ()) -> list[int]:
    """Give the numbers of the fewest layers that have every kind, in order, two at least.

    Where a kind repeats by the layer's number, only a front part keeps each layer's kind; else the
    first of each kind are picked, with the producer right before a layer that shares.
    """
    config = _completed(config)
    of = kinds(config, depth, more)
    firsts = sorted({of.index(kind) for kind in of})
    if _cycles(config) or any(config[rule["field"]] > 1 for rule in _periods(config)):
        return list(range(min(depth, max(_FEWEST, firsts[-1] + 1))))
    picked = set(firsts)
    for index in firsts:
        picked |= _producers(config, index, depth)
    rest = (index for index in range(depth) if index not in picked)
    while len(picked) < min(_FEWEST, depth):
        picked.add(next(rest))
    return sorted(picked)


def cut_fields(
    config: Mapping[str, Any], depth: int, kept: Sequence[int], *, tail: bool = False
) -> dict[str, Json]:
    """Give the fields that have to change when only ``kept`` layers stay.

    ``tail`` keeps entries beyond the last layer, which are of draft layers. A list inside a mapping
    comes with the whole mapping.
    """
    cut: dict[str, Json] = {}
    for field in layer_lists(config, depth):
        _put(cut, config, field, _pick(field.value, kept, depth, tail=tail))
    for field in id_lists(config, depth):
        _put(cut, config, field, _renumber(field.value, kept, first=field.first))
    for key, value in config.items():
        if is_count(value) and key in rules()["thresholds"]:
            cut[key] = sum(index < value for index in kept)
        elif is_count(value) and key in rules()["lasts"]:
            cut[key] = max(0, sum(index <= value for index in kept) - 1)
        elif is_count(value) and key in rules()["from_end"]:
            cut[key] = sum(index >= depth - value for index in kept)
    return {key: value for key, value in cut.items() if value != config[key]}


def _put(cut: dict[str, Json], config: Mapping[str, Any], field: LayerField, value: Json) -> None:
    if field.inside is None:
        cut[field.name] = value
        return
    whole = cut.get(field.inside, config[field.inside])
    cut[field.inside] = {**(whole if isinstance(whole, dict) else {}), field.name: value}


def _completed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Add what the model's type takes for fields that are left out."""
    assumed = rules()["assumed"].get(str(config.get("model_type")), {})
    return {**config, **{key: value for key, value in assumed.items() if config.get(key) is None}}


def _columns(config: Mapping[str, Any], depth: int) -> Iterator[Column]:
    """Give what each field of the config says about each layer."""
    for field in layer_lists(config, depth):
        entries = field.value
        yield [_hashable(entries[i]) if i < len(entries) else None for i in range(depth)]
    for field in id_lists(config, depth):
        listed = {number - field.first for number in numbers(field.value)}
        yield [index in listed for index in range(depth)]
    for key, value in config.items():
        if is_count(value) and key in rules()["thresholds"]:
            yield [index < value for index in range(depth)]
        elif is_count(value) and key in rules()["lasts"]:
            yield [index <= value for index in range(depth)]
        elif is_count(value) and key in rules()["from_end"]:
            yield [index >= depth - value for index in range(depth)]
    for rule in _periods(config):
        yield [_on_beat(config, rule, index) for index in range(depth)]
    for cycle in _cycles(config):
        yield [_hashable(cycle[index % len(cycle)]) for index in range(depth)]


def _cycles(config: Mapping[str, Any]) -> list[list[Any]]:
    """Give the lists by which kinds repeat, where they do."""
    lists = [config.get(key) for key in rules()["cycles"]]
    return [found for found in lists if isinstance(found, list) and len(found) > 1]


def _periods(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the rules of periods that hold for this config."""
    return [
        rule
        for rule in rules()["period"]
        if is_count(config.get(rule["field"]))
        and not any(config.get(key) for key in rule.get("unless", ()))
    ]


def _on_beat(config: Mapping[str, Any], rule: Mapping[str, Any], index: int) -> bool:
    offset = config.get(rule.get("offset_field", ""), rule.get("offset", 0))
    step = index + int(rule["shift"]) - (int(offset) if is_count(offset) else 0)
    step = max(step, 0) if rule.get("clipped") else step
    return bool(step % config[rule["field"]] == 0)


def _producers(config: Mapping[str, Any], index: int, depth: int) -> set[int]:
    """Give the layers whose results a sharing layer uses: the last before it that do not share."""
    return {
        max((i for i in range(index) if not _shares(field.value, i)), default=0)
        for field in layer_lists(config, depth)
        if _shares(field.value, index)
    }


def _shares(values: Sequence[Any], index: int) -> bool:
    return index < len(values) and values[index] in rules()["shared"]


def _pick(value: Any, kept: Sequence[int], depth: int, *, tail: bool) -> Json:
    places = [*kept, *(range(depth, len(value)) if tail else ())]
    if isinstance(value, str):
        return "".join(value[index] for index in places if index < len(value))
    return [value[index] for index in places]


def _renumber(value: Any, kept: Sequence[int], *, first: int) -> Json:
    place = {old + first: new + first for new, old in enumerate(kept)}
    if isinstance(value, str):
        return ",".join(str(place[n]) for n in numbers(value) if n in place)
    return [place[n] for n in value if n in place]


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else value
