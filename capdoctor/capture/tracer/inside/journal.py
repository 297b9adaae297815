"""Writes what happened, one JSON object a line, one file a process."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


class Journal:
    """Appends to ``trace-<pid>.jsonl`` in ``folder``; a forked child opens a file of its own.

    Each line is one ``write`` to the kernel: nothing is lost when the process is killed, and
    nothing buffered is written twice after a fork.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._pid = -1
        self._file = -1

    def write(self, kind: str, **values: Any) -> None:
        """Append one line.

        Raises:
            OSError: the folder cannot be written.
        """
        self.open()
        self._append({"kind": kind, "time": time.time(), **values})

    def open(self) -> None:
        """Make sure that this process has its own file, which says who it is."""
        pid = os.getpid()
        if pid == self._pid:
            return
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"trace-{pid}.jsonl"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file, self._pid = os.open(path, flags, 0o666), pid
        about = {"pid": pid, "process": _process_name(), "python": sys.version.split()[0]}
        self._append({"kind": "installed", "time": time.time(), **about})

    def _append(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, default=str, ensure_ascii=True)
        os.write(self._file, text.encode("ascii") + b"\n")


def _process_name() -> str:
    """The name that ``multiprocessing`` gave the process, as engines show it in their logs."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return "MainProcess"
    return str(process.current_process().name)
