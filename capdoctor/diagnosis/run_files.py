"""The files beside the log of a run: the driver's log, the traces, the stacks of a hung engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# In a folder without it nothing was written by a run of ours.
MARK = ".capdoctor-run"
LOG = "engine.log"
DRIVER_LOG = "driver.log"
TRACE = "trace"
AFTER = "after-end.log"
OUTCOME = "outcome.json"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The log of one run and what lies beside it; nothing may be in the folder of the traces.

    ``stacks`` is what was printed after the engine was told to end: the stacks of a hung one.
    ``outcome`` is the answer that was given when it ended.
    """

    log: Path
    driver_log: Path | None
    trace: Path
    stacks: Path | None = None
    outcome: Path | None = None


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
    return RunFiles(
        log=folder / LOG,
        driver_log=_if_there(folder / DRIVER_LOG),
        trace=folder / TRACE,
        stacks=_if_there(folder / AFTER),
        outcome=_if_there(folder / OUTCOME),
    )


def _if_there(path: Path) -> Path | None:
    return path if _is_file(path) else None


def _is_run(folder: Path) -> bool:
    return _is_file(folder / MARK)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no permission; a NUL in the name
        return False
