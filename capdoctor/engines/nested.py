"""Mappings inside mappings, as configs are: merged, taken away, compared. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two nested mappings; ``above`` wins."""
    whole = dict(below)
    for key, value in above.items():
        mine = whole.get(key)
        both = isinstance(mine, Mapping) and isinstance(value, Mapping)
        whole[key] = merged(mine, value) if both else value  # type: ignore[arg-type]
    return whole


def without(values: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """Give ``values`` without the leaves that ``taken`` has too."""
    left: dict[str, Any] = {}
    for key, value in values.items():
        other = taken.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            inner = without(value, other)
            if inner:
                left[key] = inner
        elif key not in taken:
            left[key] = value
    return left


def replaced(
    full: Mapping[str, Any], changed: Mapping[str, Any], inside: Container[str]
) -> dict[str, Any]:
    """Give ``full`` with the values of ``changed``; only mappings named in ``inside`` merge."""
    whole = dict(full)
    for key, value in changed.items():
        mine = whole.get(key)
        both = key in inside and isinstance(mine, Mapping) and isinstance(value, Mapping)
        whole[key] = replaced(mine, value, inside) if both else value  # type: ignore[arg-type]
    return whole


def differences(
    full: Mapping[str, Any], changed: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Give each value of ``changed`` that is another in ``full``: dotted path, before, after."""
    for key, value in changed.items():
        before = full.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping) and value.keys() <= {*before}:
            yield from differences(before, value, f"{prefix}{key}.")
        elif value != before:
            yield f"{prefix}{key}", before, value
