"""The tracer as a plug-in of vLLM: a folder on PYTHONPATH that looks like an installed package.

vLLM calls every entry point of the group ``vllm.general_plugins`` once in each of its processes,
forked or spawned (read: ``vllm/plugins/__init__.py``, 0.11 to 0.33); a folder with a ``dist-info``
on the path is all that ``importlib.metadata`` needs to find one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import capdoctor
from capdoctor.engines.rundir import writing

PLUGIN = "capdoctor_tracer"
TRACE_FOLDER = "CAPDOCTOR_TRACE_DIR"
_ALLOWED = "VLLM_PLUGINS"
_METADATA = f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: {capdoctor.__version__}\n"
_ENTRY_POINTS = f"[vllm.general_plugins]\n{PLUGIN} = {PLUGIN}.plugin:register\n"


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where a traced run keeps the plug-in (None for the embedded engine), and its traces."""

    trace: Path
    plugin: Path | None = None


def lay_out(folder: Path) -> None:
    """Write the package and its metadata into ``folder``, which is made.

    Raises:
        CannotDo: the folder cannot be written.
    """
    about = folder / f"{PLUGIN}-{capdoctor.__version__}.dist-info"
    with writing(folder):
        _copy(files("capdoctor.capture.tracer") / "inside", folder / PLUGIN)
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(_METADATA, encoding="utf-8")
        (about / "entry_points.txt").write_text(_ENTRY_POINTS, encoding="utf-8")


def _copy(source: Traversable, target: Path) -> None:
    """Copy the Python files of a package that may lie in an archive."""
    target.mkdir(parents=True, exist_ok=True)
    for part in source.iterdir():
        if part.is_dir() and part.name != "__pycache__":
            _copy(part, target / part.name)
        elif part.name.endswith((".py", ".json")):
            (target / part.name).write_bytes(part.read_bytes())


def variables(base: Mapping[str, str], tracing: Tracing) -> dict[str, str]:
    """Give the variables by which the tracer is loaded and knows where to write.

    ``VLLM_PLUGINS`` lists what may be loaded: unset means all and stays unset, an empty text means
    none and becomes the tracer alone.
    """
    found = {TRACE_FOLDER: str(tracing.trace)}
    allowed = base.get(_ALLOWED)
    if allowed is not None and tracing.plugin is not None:
        names = [name for name in allowed.split(",") if name]
        found[_ALLOWED] = ",".join([*names, *([] if PLUGIN in names else [PLUGIN])])
    return found


def unusable(folder: Path) -> str | None:
    """Say why a folder cannot stand on PYTHONPATH, None if it can."""
    if os.pathsep in str(folder):
        return f"PYTHONPATH cannot name a folder with {os.pathsep!r} in it: {folder}"
    return None
