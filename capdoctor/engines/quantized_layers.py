"""Layers that a quantisation config names: which are treated alike, and their new names. Pure.

Formats: lists of module names that stay unquantised (``modules_to_not_convert``, ``ignore``,
``exclude_modules``), and mappings from module names (``quantized_layers``), at any depth of the
config. Names may end in ``*``. Regular expressions (``re:...``) are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from capdoctor.model import Json

_NAME = re.compile(r"((?:[\w*]+\.)*layers\.)(\d{1,6})(?=\.|$)(.*)", re.DOTALL)
_NOT_OURS = re.compile(r"visi|visual|audio|image|encoder|mtp|draft")
_PATTERN = re.compile(r"re:.*layers\\?\.(?:\((?:\?:)?)?\[?\d(?!-9\])", re.DOTALL)
_EXPERT = re.compile(r"\bexperts\.\d+")


def treatment(config: Mapping[str, Any], depth: int) -> list[frozenset[str]]:
    """Give what the config says about each layer, as a column of kinds."""
    said: list[set[str]] = [set() for _ in range(depth)]
    for path, name, value in _names(config, ""):
        layer = _layer(name)
        if layer is not None and layer[1] < depth:
            rest = _EXPERT.sub("experts.*", layer[2])
            said[layer[1]].add(f"{path}:{layer[0]}*{rest}={value!r}")
    return [frozenset(each) for each in said]


def has_patterns_with_numbers(config: Any) -> bool:
    """Say whether a regular expression for modules speaks of layers by their number."""
    if isinstance(config, Mapping):
        return any(map(has_patterns_with_numbers, (*config, *config.values())))
    if isinstance(config, list):
        return any(map(has_patterns_with_numbers, config))
    return isinstance(config, str) and _PATTERN.match(config) is not None


def renamed(config: Mapping[str, Any], depth: int, kept: Sequence[int]) -> dict[str, Json]:
    """Give the config with the names of layers that stay, renumbered, and none that go.

    Layers beyond ``depth`` are draft layers; they come right after the last one again.
    """
    places = {old: new for new, old in enumerate(kept)}
    found = _renamed(config, depth, places)
    return found if isinstance(found, dict) else {}


def _names(config: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(config, Mapping):
        for key, value in config.items():
            if _layer(key) is None:
                yield from _names(value, f"{path}/{key}")
            else:
                yield path, key, value
    elif isinstance(config, list):
        yield from ((path, item, None) for item in config if isinstance(item, str))


def _layer(name: str) -> tuple[str, int, str] | None:
    """Split a module's name into what is before the layer's number, the number, and the rest."""
    match = _NAME.match(name)
    if match is None or _NOT_OURS.search(match[1]):
        return None
    return match[1], int(match[2]), match[3]


def _renamed(config: Any, depth: int, places: Mapping[int, int]) -> Json:
    if isinstance(config, Mapping):
        named = ((_new_name(key, depth, places), value) for key, value in config.items())
        return {key: _renamed(value, depth, places) for key, value in named if key is not None}
    if isinstance(config, list):
        items = (
            _new_name(item, depth, places)
            if isinstance(item, str)
            else _renamed(item, depth, places)
            for item in config
        )
        return [
            item for item, was in zip(items, config, strict=True) if item is not None or was is None
        ]
    return config  # type: ignore[no-any-return]


def _new_name(name: str, depth: int, places: Mapping[int, int]) -> str | None:
    layer = _layer(name)
    if layer is None:
        return name
    before, number, rest = layer
    place = number - depth + len(places) if number >= depth else places.get(number)
    return None if place is None else f"{before}{place}{rest}"
