"""A small engine of our own: the stages and the log of vLLM, seconds instead of minutes, no GPU.

It runs tiny torch models on a virtual CUDA device (or on a real one) and breaks only when the
rules of stream capture are broken. Nothing here imports torch; the child process does.

The child ends with 0 (ready), 1 (crashed, the traceback is in the log) or 3: nothing was started,
and the last line says why after ``capdoctor-embedded: setup failed: ``.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from capdoctor.engines.embedded.demo_list import Demo, demo_file, list_demos
from capdoctor.engines.embedded.settings import Settings, settings_for
from capdoctor.errors import CannotDo
from capdoctor.model import EngineSpec

EXIT_CRASHED = 1
EXIT_SETUP_FAILED = 3
SETUP_FAILED = "capdoctor-embedded: setup failed: "
SPEC_FILE = "embedded.json"

__all__ = [
    "EXIT_CRASHED",
    "EXIT_SETUP_FAILED",
    "SETUP_FAILED",
    "Demo",
    "Settings",
    "check_torch",
    "command",
    "demo_file",
    "list_demos",
    "settings_for",
]


def check_torch() -> None:
    """Make sure that torch is there, which is not imported for that.

    Raises:
        CannotDo: it is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise CannotDo(
            "The embedded engine needs torch, which is not installed.",
            "Run `pip install 'capdoctor[embedded]'`.",
        )


def command(spec: EngineSpec, run_dir: Path) -> list[str]:
    """Give the command line of the child process; its settings are written into ``run_dir``.

    Raises:
        UsageError: no such demo, or options that contradict each other.
        CannotDo: no such file, torch is not installed, or the folder cannot be written.
    """
    settings = settings_for(spec)
    check_torch()
    target = run_dir / SPEC_FILE
    try:
        target.write_text(json.dumps(settings.as_json(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise CannotDo(f"{target} cannot be written: {error.strerror}.", "Choose --out.") from error
    return [sys.executable, "-m", "capdoctor.engines.embedded.main", str(target)]
