"""How a run of ours ended, by what it wrote down itself: a log cannot tell that it hung."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from capdoctor.model import RunFacts, Stage

_MOST_BYTES = 4 << 20  # of a file that may come from a stranger


def hang_of(outcome: Path | None) -> RunFacts | None:
    """Give what is known of a run that hung; None for one that ended otherwise or does not say.

    ``outcome`` is the run's own answer. What of it cannot be read counts as not there.
    """
    said = _read(outcome) if outcome is not None else None
    if not isinstance(said, dict) or said.get("outcome") != "hung":
        return None
    return RunFacts(how="hung", stage=_last_stage(said.get("stages")))


def _read(outcome: Path) -> Any:
    try:
        with outcome.open("rb") as file:
            return json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def _last_stage(spans: Any) -> Stage | None:
    last = spans[-1] if isinstance(spans, list) and spans else None
    name = last.get("name") if isinstance(last, dict) else None
    return next((stage for stage in Stage if stage.value == name), None)
