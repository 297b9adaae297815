"""Start an engine, watch it, end it: ``EngineSpec`` in, ``RunOutcome`` out."""

from __future__ import annotations

from capdoctor.engines.listener import BarState, Quiet, RunListener
from capdoctor.engines.pythons import InstalledVllm, TargetPython, find_python
from capdoctor.engines.series import run_matrix, run_repeated
from capdoctor.engines.start import run

__all__ = [
    "BarState",
    "InstalledVllm",
    "Quiet",
    "RunListener",
    "TargetPython",
    "find_python",
    "run",
    "run_matrix",
    "run_repeated",
]
