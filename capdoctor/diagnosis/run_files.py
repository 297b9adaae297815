"""The files that lie beside the log of a run: what the driver wrote, what the tracer saw."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# In a folder without it nothing was written by a run of ours.
MARK = ".capdoctor-run"
LOG = "engine.log"
DRIVER_LOG = "driver.log"
TRACE = "trace"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The log of one run and what lies beside it; nothing may be in the folder of the traces."""

    log: Path
    driver_log: Path | None
    trace: Path


def run_of(log: Path) -> RunFiles | None:
    """Give the files of the run whose log this is; None for any other file."""
    if log.name != LOG:
        return None
    return _in(log.parent)


def runs_in(folder: Path) -> tuple[RunFiles, ...]:
    """Give the run of a run's folder, or the several runs of one; none for any other folder."""
    if not _is_run(folder):
        return ()
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and _is_run(path))
    except OSError:
        inner = []
    found = [_in(place) for place in (folder, *inner)]
    return tuple(run for run in found if run is not None)


def _in(folder: Path) -> RunFiles | None:
    if not (_is_run(folder) and _is_file(folder / LOG)):
        return None
    driver_log = folder / DRIVER_LOG
    given = driver_log if _is_file(driver_log) else None
    return RunFiles(folder / LOG, given, folder / TRACE)


def _is_run(folder: Path) -> bool:
    return _is_file(folder / MARK)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no permission; a NUL in the name
        return False
