"""What the smaller model may have made an engine choose otherwise, before a start and after. Pure.

Before: a choice stays when nothing that decides it changed; else it is unknown, since only a start
of the full model would show it. After: what the engine's log says it chose.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from capdoctor.engines.layer_fields import is_count, rules

_LONGEST_LINE = 20_000  # the line with the whole configuration has about 6,000 characters
_HEADS = ("num_attention_heads", "n_heads", "n_head")


@cache
def _choices() -> list[dict[str, Any]]:
    text = files("capdoctor.engines").joinpath("shrink_effects.toml").read_text("utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["choice"]
    return found


def expected(full: Mapping[str, Any], small: Mapping[str, Any], ranks: int) -> tuple[str, ...]:
    """Say of each choice whether the full config leads to the same, as far as can be known.

    ``ranks`` is the tensor-parallel size.
    """
    same, unknown = [], []
    for choice in _choices():
        fields = set(choice["fields"])
        before, after = dict(_leaves(full, fields)), dict(_leaves(small, fields))
        changed = sorted(
            {path.rpartition(".")[2] for path in before if before[path] != after.get(path)}
        )
        if changed:
            unknown.append(f"{choice['name']}: unknown ({', '.join(changed)} decides it too)")
        elif before:
            same.append(choice["name"])
    said = [f"as in the full model: {', '.join(same)}"] if same else []
    return (
        *said,
        *(f"perhaps not as in the full model: {each}" for each in unknown),
        *_per_rank(full, ranks),
    )


def settled(lines: Iterable[str]) -> tuple[str, ...]:
    """Give what the engine says in its log that it chose, each choice with its values in order."""
    found: dict[str, dict[str, None]] = {choice["name"]: {} for choice in _choices()}
    patterns = [(choice["name"], _compiled(choice["name"])) for choice in _choices()]
    for line in lines:
        for name, pattern in patterns:
            for match in pattern.finditer(line[:_LONGEST_LINE]):
                found[name][next(group for group in match.groups() if group)] = None
    return tuple(f"chosen by the engine: {name}: {', '.join(v)}" for name, v in found.items() if v)


@cache
def _compiled(name: str) -> re.Pattern[str]:
    choice = next(choice for choice in _choices() if choice["name"] == name)
    return re.compile("|".join(f"(?:{pattern})" for pattern in choice["logged"]))


def _per_rank(config: Mapping[str, Any], ranks: int) -> list[str]:
    """Say how many heads a rank has: backends choose by it, and shrinking tempts to fewer ranks."""
    config = _language(config)
    heads = next((config[key] for key in _HEADS if is_count(config.get(key))), None)
    if heads is None or heads % ranks:
        return []
    here = f"heads per rank: {heads // ranks} (tensor-parallel size {ranks})"
    return [f"{here}; another size than in production can lead to another backend"]


def _language(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in rules()["nested"]:
        inner = config.get(key)
        if isinstance(inner, Mapping):
            return _language(inner)
    return config


def _leaves(
    config: Mapping[str, Any], names: set[str], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, names, f"{prefix}{key}.")
        elif key in names:
            yield f"{prefix}{key}", value
