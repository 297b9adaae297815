"""The stage markers as values, and the search for them in one line."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from ahocorasick_rs import AhoCorasick, MatchKind

from capdoctor.logs.tables import table
from capdoctor.logs.values import Engine
from capdoctor.model import Stage


class Marker(NamedTuple):
    """One entry of ``data/stages.toml``."""

    id: str
    texts: tuple[str, ...]
    stage: Stage
    ended: Stage | None
    start: bool
    engine: Engine | None
    late: bool = False


@cache
def markers() -> tuple[Marker, ...]:
    """Give all markers in the order of the file."""
    return tuple(_marker(entry) for entry in table("marker"))


def find_marker(line: str) -> Marker | None:
    """Give the marker that comes first in the line, if any does."""
    automaton, owners = _automaton()
    hits = automaton.find_matches_as_indexes(line)
    return owners[hits[0][0]] if hits else None


@cache
def _automaton() -> tuple[AhoCorasick, tuple[Marker, ...]]:
    pairs = [(text, marker) for marker in markers() for text in marker.texts]
    automaton = AhoCorasick([text for text, _ in pairs], matchkind=MatchKind.LeftmostFirst)
    return automaton, tuple(marker for _, marker in pairs)


def _marker(entry: dict[str, Any]) -> Marker:
    ended, engine = entry.get("ended"), entry.get("engine")
    return Marker(
        id=str(entry["id"]),
        texts=tuple(entry["text"]),
        stage=Stage(str(entry["stage"])),
        ended=Stage(str(ended)) if ended else None,
        start=bool(entry.get("start", False)),
        engine="sglang" if engine == "sglang" else "vllm" if engine == "vllm" else None,
        late=bool(entry.get("late", False)),
    )
