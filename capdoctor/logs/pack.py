"""Make ``packed.json`` of the TOML files: ``python -m capdoctor.logs.pack``.

Run it after every change under ``data/``.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

from capdoctor.logs.tables import PACKED, ROOM


def pack() -> str:
    """Give the text that ``packed.json`` should have."""
    content: dict[str, Any] = {}
    for path in sorted((ROOM / "data").glob("*.toml")):
        content |= tomllib.loads(path.read_text(encoding="utf-8"))
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    PACKED.write_text(pack(), encoding="utf-8")
