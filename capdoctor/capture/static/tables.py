"""The data files of the static pass, read once and turned into sets and expressions."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


def _read(name: str) -> dict[str, Any]:
    folder = resources.files("capdoctor.capture.static") / "data"
    return tomllib.loads((folder / name).read_text(encoding="utf-8"))


@cache
def names(key: str) -> frozenset[str]:
    """Give one list of torch_api.toml as a set."""
    return frozenset(_torch_api()[key])


@cache
def _torch_api() -> dict[str, Any]:
    return _read("torch_api.toml")


@cache
def pattern(key: str) -> re.Pattern[str]:
    """Give one expression of reach.toml, or of torch_api.toml."""
    return re.compile((_reach() | _torch_api())[key].strip())


@cache
def _reach() -> dict[str, Any]:
    return _read("reach.toml")


@cache
def matches(key: str, text: str) -> bool:
    """Say whether the expression called ``key`` is found in the text."""
    return pattern(key).search(text) is not None


@dataclass(frozen=True, slots=True)
class StaticRule:
    """One rule of the pass. ``confirmed_by`` is the run-time rule that a check would report."""

    id: str
    confirmed_by: str
    what: str
    instead: str


@cache
def rules() -> dict[str, StaticRule]:
    """Give every rule of the pass by its id."""
    return {row["id"]: StaticRule(**row) for row in _read("rules.toml")["rule"]}
