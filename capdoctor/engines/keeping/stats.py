"""What /proc tells about processes. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """A line of /proc/PID/stat; the start time is in clock ticks since boot.

    ``seconds`` is the CPU time used, that of children which ended included: a compiler may live
    shorter than anybody looks.
    ``exit_code`` is the wait status (field 52 of proc(5)); it means something for zombies only.
    """

    state: str
    parent: int
    seconds: float
    born: int
    exit_code: int


def read_stat(pid: int) -> Stat | None:
    """Return what is known about a process, None if it is not there."""
    text = read(f"/proc/{pid}/stat")
    if not text:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    return Stat(
        state=fields[0].decode(),
        parent=int(fields[1]),
        seconds=sum(map(int, fields[11:15])) / _TICKS,
        born=int(fields[19]),
        exit_code=int(fields[49]),
    )


def read_stats() -> dict[int, Stat]:
    """Return what is known about every process of the machine."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return {pid: stat for pid in pids if (stat := read_stat(pid)) is not None}


def descendants(stats: Mapping[int, Stat], root: int) -> set[int]:
    """Return every process below ``root``, without it."""
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        children.setdefault(stat.parent, []).append(pid)
    below: set[int] = set()
    todo = [root]
    while todo:
        fresh = [pid for pid in children.get(todo.pop(), ()) if pid not in below]
        below.update(fresh)
        todo.extend(fresh)
    return below


def read(path: str) -> bytes:
    """Return a file of /proc, empty where the process is gone or not ours to look at."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
