"""A fault of capdoctor's own, written down as a report ready to paste into an issue."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from capdoctor import __version__
from capdoctor.folders import state_folder


def write_fault_report(fault: BaseException, arguments: Sequence[str]) -> Path:
    """Write the Markdown report and give its path; falls back to the temporary folder."""
    text = fault_report(fault, arguments)
    name = f"fault-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.md"
    for place in (_faults_folder, tempfile.gettempdir):
        try:
            folder = Path(place())
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / name
            path.write_text(text, encoding="utf-8")
        except OSError:
            continue
        return path
    return Path("(no folder could be written)")


def fault_report(fault: BaseException, arguments: Sequence[str]) -> str:
    """Give the report as Markdown: what was run, where it failed, on what."""
    trace = "".join(traceback.format_exception(fault))
    return (
        f"# capdoctor {__version__} failed: {type(fault).__name__}\n\n"
        f"- arguments: `{list(arguments)!r}`\n"
        f"- Python: {sys.version.split()[0]} on {platform.platform()}\n\n"
        f"````text\n{trace}````\n"
    )


def _faults_folder() -> Path:
    return state_folder() / "faults"
