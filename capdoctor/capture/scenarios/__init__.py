"""Scenarios: real source files of a project, exercised the way a known crash needs.

A scenario runs in a child process of capdoctor's own Python. It writes the log of an engine
start-up to its stdout and ends with 0 (it started), 1 (it crashed) or 3 (it could not be set
up, or does not apply); ``scenario.json`` in the run's folder says the same as data.
"""

from __future__ import annotations

import sys
from pathlib import Path

NAMES = ("sparse-mla", "fold-indptr")
# How the last line of a child begins that could not set its scenario up; the reason follows.
SETUP_FAILED = "capdoctor-embedded: setup failed: "


def command(name: str, source: Path, device: str, as_torch: str | None, run_dir: Path) -> list[str]:
    """Give the command line of the child that runs a scenario.

    ``device`` is ``cpu`` for the virtual device, ``cuda`` for a real one.
    """
    line = [sys.executable, "-m", "capdoctor.capture.scenarios", name]
    line += ["--source", str(source), "--device", device, "--run-dir", str(run_dir)]
    return [*line, "--as-torch", as_torch] if as_torch else line


__all__ = ["NAMES", "SETUP_FAILED", "command"]
