"""The data of this room, read from one packed file.

``packed.json`` is made of the TOML files under ``data/`` by ``pack.py`` (a test keeps the two
equal): a parser of TOML would cost every start some milliseconds.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parent
PACKED = ROOM / "packed.json"


@cache
def table(name: str) -> list[dict[str, Any]]:
    """Give the entries ``[[name]]`` in the order of their file."""
    entries: list[dict[str, Any]] = _packed()[name]
    return entries


@cache
def _packed() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(PACKED.read_bytes())
    return data
