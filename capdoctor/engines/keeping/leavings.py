"""What a killed engine leaves on a machine: shared memory, temporary files. Standard library only.

Processes that end by themselves unlink their segments in /dev/shm; killed ones do not, and the
names are random. So it is watched who makes what. A segment is the run's if one of its processes
had it, and a stranger's if another process had it; one that nobody was ever seen to have goes only
if it has a name that engines give and nobody alive has it at the end either.

Who has what is decided by inode numbers, never by names: glibc makes a semaphore under a temporary
name, maps it and renames it, so that the map of its owner shows a name that is gone.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from .stats import read

FOLDER = Path("/dev/shm")  # noqa: S108 - where Linux has its shared memory
_PREFIX = bytes(FOLDER) + b"/"
_IN_CREATE, _IN_MOVED_TO = 0x100, 0x80
_EVENT = struct.Struct("iIII")
_LOOKS = 3
# The numbers that Linux gives to the first namespaces of a machine (include/linux/proc_ns.h).
_FIRST_PID, _FIRST_IPC = "pid:[4026531836]", "ipc:[4026531839]"
# Made by Python's multiprocessing and loky, torch, NCCL/RCCL, OpenMP and vLLM; ``sem.`` and six
# letters is what glibc's sem_open makes for a moment, and leaves when it is killed in that moment.
_ENGINE_NAMES = re.compile(r"psm_|sem\.mp-|sem\.loky|sem\.\w{6}\Z|torch_|nccl-|rccl-|__KMP|vllm")


class SegmentWatch:
    """The names that appear in /dev/shm from now on; the run's own ones are ``ours``."""

    def __init__(self) -> None:
        self.ours: set[str] = set()
        self._looks: dict[str, int] = {}
        self._holders: dict[str, set[int]] = {}
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor >= 0:
            events = ctypes.c_uint32(_IN_CREATE | _IN_MOVED_TO)
            libc.inotify_add_watch(self.descriptor, bytes(FOLDER), events)

    @property
    def unsure(self) -> set[str]:
        """The names whose owner was not seen yet."""
        return set(self._looks)

    def read(self, pids: Collection[int]) -> None:
        """Take in what has appeared, and who has it; ``pids`` are the run's processes."""
        self._looks |= dict.fromkeys(self._names(), 0)
        self.look(pids)

    def look(self, pids: Collection[int], *, once_more: bool = False) -> None:
        """Ask again who has the names that are unsure; after a few times only ``once_more``."""
        asked = {name for name, looks in self._looks.items() if once_more or looks < _LOOKS}
        if not asked:
            return
        mine = inodes_in_use(pids)
        theirs = holders(set(all_pids()) - set(pids))
        for name in asked:
            self._settle(name, mine, theirs)

    def _settle(self, name: str, mine: set[int], theirs: Mapping[int, set[int]]) -> None:
        inode = _inode(name)
        self._looks[name] += 1
        if inode in mine:
            self.ours.add(name)
        elif inode is not None and inode in theirs:
            self._holders[name] = theirs[inode]
        if inode is None or inode in mine or inode in theirs:
            del self._looks[name]

    def adopt(self, family: Collection[int]) -> None:
        """Take in what only processes had that turned out to be the run's: ``family``.

        A process that was started a moment ago looks like a stranger's until it is seen.
        """
        self.ours |= {name for name, pids in self._holders.items() if pids <= set(family)}

    def claim(self, pids: Collection[int]) -> None:
        """Take in what ``pids`` have now of the kinds that engines make, for want of a watch."""
        mine = inodes_in_use(pids)
        names = [path.name for path in FOLDER.iterdir() if _ENGINE_NAMES.match(path.name)]
        self.ours |= {name for name in names if _inode(name) in mine}

    def _names(self) -> Iterator[str]:
        while self.descriptor >= 0:
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:
                return
            yield from _event_names(data)


def _event_names(data: bytes) -> Iterator[str]:
    place = 0
    while place < len(data):
        size = _EVENT.unpack_from(data, place)[3]
        place += _EVENT.size
        yield os.fsdecode(data[place : place + size].rstrip(b"\0"))
        place += size


def remove_segments(watch: SegmentWatch) -> list[str]:
    """Unlink what is left of the run in /dev/shm and return the names; the run is over."""
    unsure = watch.unsure if sees_every_user() else set()
    names = watch.ours | {name for name in unsure if _ENGINE_NAMES.match(name)}
    names = {name for name in names if _inode(name) is not None}
    in_use = inodes_in_use(all_pids()) if names else set()
    return sorted(name for name in names if _inode(name) not in in_use and _unlink(name))


def _unlink(name: str) -> bool:
    """Remove a segment of this user's; whether that was possible."""
    path = FOLDER / name
    try:
        if path.is_dir() or path.stat().st_uid != os.getuid():
            return False
        path.unlink()
    except OSError:
        return False
    return True


def remove_folder(path: str) -> None:
    """Remove a temporary folder, whatever the engine put there."""
    if path:
        shutil.rmtree(path, ignore_errors=True)


def all_pids() -> list[int]:
    """Return every process of the machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def inodes_in_use(pids: Iterable[int]) -> set[int]:
    """Return the inodes in /dev/shm that these processes have open or mapped."""
    return set(holders(pids))


def holders(pids: Iterable[int]) -> dict[int, set[int]]:
    """Return who of these processes has which inode in /dev/shm open or mapped."""
    found: dict[int, set[int]] = {}
    for pid in pids:
        for inode in (*_mapped(pid), *_open(Path(f"/proc/{pid}/fd"))):
            found.setdefault(inode, set()).add(pid)
    return found


def sees_every_user(proc: Path = Path("/proc/self/ns")) -> bool:
    """Whether /proc shows everybody who may use /dev/shm.

    It does not in a container that has the host's IPC and its own processes (``--ipc=host``, as
    vLLM's documentation advises): what nobody seems to have may be a neighbour's.
    """
    return _namespace(proc / "pid") == _FIRST_PID or _namespace(proc / "ipc") != _FIRST_IPC


def _namespace(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _mapped(pid: int) -> Iterator[int]:
    for line in read(f"/proc/{pid}/maps").split(b"\n"):
        if b" " + _PREFIX in line:
            yield int(line.split(None, 5)[4])


def _open(folder: Path) -> Iterator[int]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            if bytes(entry.readlink()).startswith(_PREFIX):
                yield entry.stat().st_ino
        except OSError:
            continue


def _inode(name: str) -> int | None:
    try:
        return (FOLDER / name).lstat().st_ino
    except OSError:
        return None
