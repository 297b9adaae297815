"""Processes that a run has left behind, known by a variable in their environment.

A child that made a session of its own is in no process group of ours, and after a kill -9 nobody
was left to end anything. Both still carry the variable; a process id alone could be another's.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

MARK = "CAPDOCTOR_BISECT_RUN"
ROUNDS = 5  # a process may fork while it is looked for


def mark(out: Path) -> dict[str, str]:
    """Return the variable that a run's processes carry: the folder of the run's files."""
    return {MARK: str(out)}


def end_strays(folder: Path) -> int:
    """Kill every process of the runs whose files lie in ``folder``; returns how many."""
    ended = 0
    for _ in range(ROUNDS):
        found = _strays(folder)
        if not found:
            break
        for process in found:
            _kill(process)
        psutil.wait_procs(found, timeout=1)
        ended += len(found)
    return ended


def _strays(folder: Path) -> list[psutil.Process]:
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter(["pid", "environ", "status"])
        if process.pid not in ours
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and _lies_in((process.info["environ"] or {}).get(MARK), folder)
    ]


def _lies_in(named: str | None, folder: Path) -> bool:
    return named is not None and Path(named).is_relative_to(folder)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.Error:
        return
