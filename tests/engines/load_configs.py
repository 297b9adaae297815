"""Read configs as the engine does: ``python load_configs.py FOLDER`` in the Python that has vLLM.

FOLDER holds a folder with a config.json for each model. Prints a JSON object: for each what the
engine makes of it, with all that its config class derives, or the ``error``.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

logging.disable(logging.ERROR)
from vllm.transformers_utils.config import get_config  # noqa: E402 - after the log is quiet


def read(folder: Path) -> dict[str, Any]:
    """Give the values of a model's config."""
    try:
        config = get_config(str(folder), trust_remote_code=False)
    except Exception as error:  # noqa: BLE001 - whatever a config class raises is the answer
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    found: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=str))
    return found


if __name__ == "__main__":
    folders = sorted(Path(sys.argv[1]).iterdir())
    sys.stdout.write("\n" + json.dumps({folder.name: read(folder) for folder in folders}))
