"""What each error mode of a capture forbids to which threads: the table ``modes.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources


class Mode(StrEnum):
    """The ``capture_error_mode`` of a capture. torch's default, and vLLM's, is ``global``."""

    GLOBAL = "global"
    THREAD_LOCAL = "thread_local"
    RELAXED = "relaxed"


@dataclass(frozen=True, slots=True)
class CallKind:
    """A kind of call: ``forbidden`` holds, by mode, the threads that may not make it."""

    kind: str
    means: str
    source: str
    forbidden: Mapping[Mode, frozenset[str]]


def forbids(kind: str, mode: Mode, *, own_thread: bool) -> bool:
    """Say whether a capture of this mode forbids the call to the thread that makes it."""
    return ("own" if own_thread else "other") in call_kinds()[kind].forbidden[mode]


@cache
def call_kinds() -> Mapping[str, CallKind]:
    """All rows of the table by kind."""
    text = (resources.files("capdoctor.capture") / "tables" / "modes.toml").read_text("utf-8")
    rows = tomllib.loads(text)["call"]
    return {
        row["kind"]: CallKind(
            row["kind"], row["means"], row["source"], {m: frozenset(row[m.value]) for m in Mode}
        )
        for row in rows
    }
