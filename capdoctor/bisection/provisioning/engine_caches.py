"""Caches that starts of one engine share in a bisection, where that cannot change a verdict."""

from __future__ import annotations

import os

from capdoctor.bisection.history.tree_keys import tree_key
from capdoctor.bisection.probes.probe import Place
from capdoctor.engines.environment import COMPILE_CACHES
from capdoctor.model import Stage

# Compilation is over by then. A crash in it, or before, may depend on whether a cache was there.
_AFTER_COMPILATION = frozenset(
    {Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.KV_CACHE, Stage.WARMUP, Stage.CAPTURE}
)


def engine_caches(place: Place, package: str = "vllm") -> dict[str, str]:
    """Return the variables by which starts of the same sources share what they have compiled.

    Only where the crash that is looked for comes after compilation. Commits whose ``package`` is
    the same share a folder, others never do: a compile cache shared between versions lends one the
    crash of another. Nor do workers: vLLM writes files of its cache in place, and one that starts
    meanwhile would read half of them. It lies beside the worktrees and goes with them; what the
    user has set stays.
    """
    if place.stage not in _AFTER_COMPILATION:
        return {}
    key = tree_key(place.mirror, place.sha, (package,))
    folder = place.worktrees / "caches" / f"{key}-{place.worker}"
    found = {name: str(folder / part) for name, part in COMPILE_CACHES.items()}
    return {name: value for name, value in found.items() if name not in os.environ}
