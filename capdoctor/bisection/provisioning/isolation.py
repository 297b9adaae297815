"""Variables that keep a command's runs apart: fresh caches, no stale module, no nightly binary."""

from __future__ import annotations

import os
from pathlib import Path

from capdoctor.bisection.history.layout import layout_of
from capdoctor.bisection.history.tree_keys import tree_key
from capdoctor.bisection.probes.probe import Place
from capdoctor.engines.environment import COMPILE_CACHES


def isolated(place: Place, work: Path) -> dict[str, str]:
    """Return the variables for a command at a commit; what the user has set stays as it is.

    aiter names its compiled modules without regard to their source, so each set of native sources
    gets a folder of its own, under ``work``. vLLM's ``setup.py`` falls back to nightly binaries
    on a detached HEAD, unless it is told which commit's to take.
    """
    # A compile cache shared between commits lends one commit the crash of another.
    folder = caches_of(place)
    found = {name: str(folder / part) for name, part in COMPILE_CACHES.items()}
    layout = layout_of(place.mirror, place.sha)
    if layout is not None and layout.name == "aiter":
        key = tree_key(place.mirror, place.sha, layout.native)
        found["AITER_JIT_DIR"] = str(work / "aiter-jit" / key)
    if layout is not None and layout.name == "vllm":
        found["VLLM_PRECOMPILED_WHEEL_COMMIT"] = place.sha
    return {name: value for name, value in found.items() if name not in os.environ}


def caches_of(place: Place) -> Path:
    """Return the folder of a run's caches; whoever runs something removes it afterwards."""
    return place.out / "caches"
