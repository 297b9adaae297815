"""Make ``packed.json`` of the TOML files: ``python -m capdoctor.diagnosis.pack``.

Run it after every change under ``data/`` or ``signatures/``.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from capdoctor.diagnosis.hints import needed_texts
from capdoctor.diagnosis.tables import PACKED, ROOM


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def pack() -> str:
    """Give the text that ``packed.json`` should have."""
    tables = {path.stem: _read(path) for path in sorted((ROOM / "data").glob("*.toml"))}
    folder = ROOM / "signatures"
    files = sorted(folder.rglob("*.toml"))
    signatures = {path.relative_to(folder).as_posix(): _read(path) for path in files}
    content = {"tables": tables, "signatures": signatures, "hints": _hints(signatures)}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def _hints(signatures: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    patterns: set[str] = set()
    for content in signatures.values():
        for condition in (*content["when"], *content.get("unless", ())):
            listed = condition.get("regex", [])
            patterns |= set(listed if isinstance(listed, list) else [listed])
    found = {pattern: needed_texts(pattern) for pattern in sorted(patterns)}
    return {pattern: texts for pattern, texts in found.items() if texts}


if __name__ == "__main__":
    PACKED.write_text(pack(), encoding="utf-8")
