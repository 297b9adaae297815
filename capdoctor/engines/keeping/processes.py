"""The processes of a run: starting one, and seeing all of them. Standard library only.

Everything is read from /proc. A process is known by its number *and* its start time, since numbers
are used again.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from .stats import Stat, descendants, read, read_stat, read_stats

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TRACKER = b"multiprocessing.resource_tracker"
_TITLE_LENGTH = 300


class StartOrder(TypedDict):
    """What to start. ``out`` and ``err`` are inherited descriptors, ``marker`` is ``A=b``."""

    command: list[str]
    env: dict[str, str]
    cwd: str | None
    marker: str
    tmpdir: str
    out: int
    err: int


class Gone(TypedDict):
    """A process that ended: when (Unix time), and its wait status where it could be known."""

    pid: int
    title: str
    at: float
    status: int | None


@dataclass(slots=True)
class Seen:
    """What is known about one living process."""

    pid: int
    born: int
    pidfd: int
    parent: int = 0
    title: str = ""
    seconds: float = 0.0
    state: str = "?"
    tracker: bool = False
    watched: bool = False


def become_subreaper() -> None:
    """Become the parent of every descendant whose own parent dies (Linux 3.4)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(order: StartOrder) -> int:
    """Start the engine in a process group and terminal group of its own; return its number.

    It gets SIGKILL when this process dies: the signal is tied to the parent's *thread*, and this
    process has only one. No core files, since they would be left in the user's folder.

    Raises:
        OSError: the command cannot be executed.
    """
    child = subprocess.Popen(
        order["command"],
        env=order["env"],
        cwd=order["cwd"],
        stdin=subprocess.DEVNULL,
        stdout=order["out"],
        stderr=order["err"],
        start_new_session=True,
        preexec_fn=_in_child,  # noqa: PLW1509 - this process has one thread
    )
    child.returncode = 0  # reaped by Tree, never by subprocess
    os.close(order["out"])
    os.close(order["err"])
    return child.pid


def _in_child() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


class Tree:
    """All processes below ``root``, and strays that carry the marker in their environment."""

    def __init__(self, root: int, marker: str) -> None:
        self._root = root
        self._marker = marker.encode()
        self._seen: dict[int, Seen] = {}
        self._told: set[tuple[int, int]] = set()

    def pids(self) -> set[int]:
        """Return the numbers of the processes that lived at the last scan."""
        return set(self._seen)

    def family(self) -> set[int]:
        """Return the numbers of all that were ever seen, the ended ones too."""
        return set(self._seen) | {pid for pid, _ in self._told}

    def everyone(self) -> list[Seen]:
        """Return all that lived at the last scan."""
        return list(self._seen.values())

    def others(self) -> list[Seen]:
        """Return those that are not resource trackers."""
        return [seen for seen in self._seen.values() if not seen.tracker]

    def states(self) -> list[tuple[int, int, str, float, str]]:
        """Return number, parent, title, CPU seconds and state letter of each."""
        return [(s.pid, s.parent, s.title, s.seconds, s.state) for s in self._seen.values()]

    def scan(self, *, strays: bool = False) -> None:
        """Look at /proc again; ``strays`` also reads every environment, which is slower."""
        stats = read_stats()
        below = descendants(stats, self._root)
        if strays:
            below |= {pid for pid in stats if pid not in below and self._is_ours(pid)}
        for pid in below:
            if (pid, stats[pid].born) not in self._told:
                self._see(pid, stats[pid])

    def _see(self, pid: int, stat: Stat) -> None:
        seen = self._seen.get(pid)
        if seen is None or seen.born != stat.born:
            if stat.state == "Z" and stat.parent != self._root:
                return
            seen = self._seen[pid] = Seen(pid, stat.born, _pidfd(pid))
        seen.parent, seen.state, seen.seconds = stat.parent, stat.state, stat.seconds
        line = read(f"/proc/{pid}/cmdline")
        if line:
            title = line.replace(b"\0", b" ").strip().decode("utf-8", "replace")
            seen.title = title[:_TITLE_LENGTH]
            seen.tracker = _TRACKER in line

    def _is_ours(self, pid: int) -> bool:
        environment = b"" if pid == os.getpid() else read(f"/proc/{pid}/environ")
        return self._marker in environment.split(b"\0")

    def pidfds_to_watch(self) -> list[int]:
        """Return the handles of processes that nobody polls yet."""
        fresh = [s for s in self._seen.values() if not s.watched and s.pidfd >= 0]
        for seen in fresh:
            seen.watched = True
        return [seen.pidfd for seen in fresh]

    def notice_deaths(
        self, ready: set[int], unwatch: Callable[[int], None] | None = None
    ) -> list[Gone]:
        """Forget and return the processes that are gone; ``ready`` are handles that said so.

        The wait status is known for our own and adopted children, and for others as long as they
        are zombies; it is None where their parent was quicker.
        """
        dead = {s.pid: s for s in self._seen.values() if s.pidfd in ready or not _alive(s)}
        found = {pid: _zombie_status(seen) for pid, seen in dead.items()}
        found |= {pid: status for pid, status in _reaped() if pid in self._seen}
        return [self._forget(self._seen[pid], status, unwatch) for pid, status in found.items()]

    def _forget(
        self, seen: Seen, status: int | None, unwatch: Callable[[int], None] | None
    ) -> Gone:
        del self._seen[seen.pid]
        self._told.add((seen.pid, seen.born))
        if seen.pidfd >= 0:
            if unwatch is not None and seen.watched:
                unwatch(seen.pidfd)
            os.close(seen.pidfd)
        return {"pid": seen.pid, "title": seen.title, "at": time.time(), "status": status}


def _alive(seen: Seen) -> bool:
    stat = read_stat(seen.pid)
    return stat is not None and stat.born == seen.born and stat.state not in "ZX"


def _zombie_status(seen: Seen) -> int | None:
    """Read how a process ended while it still waits for its parent."""
    stat = read_stat(seen.pid)
    if stat is None or stat.state != "Z" or stat.born != seen.born:
        return None
    return stat.exit_code


def _reaped() -> list[tuple[int, int]]:
    """Take leave of every child of ours that ended, adopted ones included."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended.append((pid, status))


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, or gone already: the next scan will see
        return -1
