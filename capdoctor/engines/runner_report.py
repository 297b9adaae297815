"""What the runner in the target Python notes while it starts the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal


class RunnerReport:
    """Read the runner's file again whenever it changed; ``facts`` is empty before its first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = 0
        self.facts: dict[str, Any] = {}

    @property
    def step(self) -> str | None:
        """How far the runner is: ``imported``, ``configured``, ``ready`` or ``refused``."""
        self._refresh()
        step = self.facts.get("step")
        return str(step) if step else None

    @property
    def progress(self) -> Literal["imported", "ready"] | None:
        """What the step says about the start-up."""
        step = self.step
        if step == "ready":
            return "ready"
        return "imported" if step in ("imported", "configured") else None

    def _refresh(self) -> None:
        try:
            stamp = self._path.stat().st_mtime_ns
            if stamp != self._stamp:
                self.facts = json.loads(self._path.read_text(encoding="utf-8"))
                self._stamp = stamp
        except (OSError, ValueError):
            return  # not there yet
