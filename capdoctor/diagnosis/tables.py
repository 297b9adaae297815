"""The data tables of this room, read from one packed file.

``packed.json`` is made of the TOML files under ``data/`` and ``signatures/`` by ``pack.py`` (a test
keeps the two equal): parsing the TOML at every start would cost some 30 ms, the packed form 1 ms.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parent
PACKED = ROOM / "packed.json"


@lru_cache(maxsize=1)
def _packed() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(PACKED.read_bytes())
    return data


def table(name: str) -> dict[str, Any]:
    """Give the table ``data/<name>.toml`` as a dict."""
    found: dict[str, Any] = _packed()["tables"][name]
    return found


def regex_hints() -> dict[str, list[str]]:
    """Give, for patterns of bundled signatures, texts one of which is in every match."""
    hints: dict[str, list[str]] = _packed()["hints"]
    return hints


def bundled_signatures() -> list[tuple[str, dict[str, Any]]]:
    """Give the name and content of every signature file that ships with capdoctor."""
    return [(name, content) for name, content in _packed()["signatures"].items()]
