"""What a field of a model's config says about its layers, recognised by name and shape. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_EXTRA_ENTRIES = 4  # lists may also have entries for draft layers


@cache
def rules() -> dict[str, Any]:
    """Give the rules of ``layer_rules.toml``."""
    text = files("capdoctor.engines").joinpath("layer_rules.toml").read_text("utf-8")
    return tomllib.loads(text)


@dataclass(frozen=True, slots=True)
class LayerField:
    """A field that speaks of single layers; ``inside`` names the mapping that holds it, if any.

    ``first`` is the number that layer 0 has in a list of layer numbers: some count from 1.
    """

    name: str
    value: Any
    inside: str | None = None
    first: int = 0


def layer_lists(config: Mapping[str, Any], depth: int) -> Iterator[LayerField]:
    """Give the fields that have one entry a layer, inner ones too."""
    for field in _fields(config):
        if _is_layer_list(field, depth) or _is_pattern(field):
            yield field


def id_lists(config: Mapping[str, Any], depth: int) -> Iterator[LayerField]:
    """Give the fields that list layer numbers, inner ones too."""
    for field in _fields(config):
        if _is_layer_list(field, depth) or not _is_id_list(field, depth):
            continue  # one entry a layer, whatever its name: of flags, not of numbers
        yield LayerField(field.name, field.value, field.inside, _first(config, field, depth))


def numbers(value: str | Sequence[int]) -> list[int]:
    """Give layer numbers that stand in a list or in a text with commas."""
    return [int(part) for part in value.split(",")] if isinstance(value, str) else list(value)


def is_count(value: Any) -> bool:
    """Say whether this is a number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _fields(config: Mapping[str, Any]) -> Iterator[LayerField]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            if not re.search(rules()["no_mapping"], key):
                yield from _listed((LayerField(name, item, key) for name, item in value.items()))
        else:
            yield from _listed([LayerField(key, value)])


def _listed(fields: Any) -> Iterator[LayerField]:
    for field in fields:
        if isinstance(field.value, (list, str)) and not re.search(rules()["no_list"], field.name):
            yield field


def _is_layer_list(field: LayerField, depth: int) -> bool:
    if not isinstance(field.value, list) or depth <= 1:
        return False
    lasts = depth + _EXTRA_ENTRIES
    return depth <= len(field.value) <= lasts and not _counts_up(field, depth)


def _counts_up(field: LayerField, depth: int) -> bool:
    """Say whether a list that is as long as there are layers names them all by number."""
    return _is_id_list(field, depth) and field.value in (
        list(range(depth)),
        list(range(1, depth + 1)),
    )


def _is_pattern(field: LayerField) -> bool:
    return field.name in rules()["patterns"] and isinstance(field.value, str)


def _is_id_list(field: LayerField, depth: int) -> bool:
    if not field.value or not re.search(rules()["ids"], field.name):
        return False
    if isinstance(field.value, str):
        return bool(re.fullmatch(r"\s*\d{1,6}(\s*,\s*\d{1,6})*\s*", field.value))
    return all(
        isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= depth for n in field.value
    )


def _first(config: Mapping[str, Any], field: LayerField, depth: int) -> int:
    """Say whether the lists of an inner mapping count layers from 0 or from 1."""
    if field.inside is None:
        return 0
    siblings = (LayerField(key, item) for key, item in config[field.inside].items())
    found = {
        n
        for sibling in _listed(siblings)
        if not _is_layer_list(sibling, depth) and _is_id_list(sibling, depth)
        for n in numbers(sibling.value)
    }
    return 1 if depth in found and 0 not in found else 0
