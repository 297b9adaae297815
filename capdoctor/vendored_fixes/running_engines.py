"""Which processes use a package right now, as far as /proc shows it to this user.

A process that has imported the old file keeps running it, and its children may import the new
one: a mix of both that nobody tested. So the shop refuses unless it is told not to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TITLES = re.compile(r"\A(?:VLLM|sglang)::|\b(?:vllm|sglang)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class User:
    """A process and the sign by which it was found."""

    pid: int
    command: str
    why: str


def users_of(package: Path, prefix: Path | None, proc: Path = PROC) -> list[User]:
    """Give the processes that use the package in ``package`` (a real path), this one left out.

    ``prefix`` is the environment that the package is installed in, if it is. Processes of other
    users show less of themselves to anyone but root.
    """
    mine = {os.getpid(), *_parents(proc, os.getpid())}
    found = (
        _look_at(folder, package, prefix)
        for folder in sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name))
        if int(folder.name) not in mine
    )
    return [user for user in found if user is not None]


def _look_at(folder: Path, package: Path, prefix: Path | None) -> User | None:
    line = _read(folder / "cmdline")
    words = [word for word in re.split(rb"[\0 ]+", line) if word]
    inside = os.fsencode(package) + b"/"
    maps = _read(folder / "maps")
    why = None
    if any(word.rpartition(b"/")[2] == b"capdoctor" for word in words):
        return None  # another capdoctor waits for its turn; the lock is for that
    if inside in maps:
        why = "it has a library of the package loaded"
    elif _is_python(words, maps):
        variables = _variables(folder)
        if inside in line + b"/":
            why = "its command line names a file of the package"
        elif _on_path(variables, package):
            why = "its PYTHONPATH leads to the package"
        elif _is_engine(words) and _same_environment(words, maps, variables, package, prefix):
            why = "it is an engine of the same environment"
    if why is None:
        return None
    return User(int(folder.name), b" ".join(words).decode(errors="replace")[:80], why)


def _is_python(words: list[bytes], maps: bytes) -> bool:
    """An engine that renamed itself shows no interpreter in its command line, but loads it."""
    return b"python" in (words[0] if words else b"").rpartition(b"/")[2] or b"python" in maps


def _is_engine(words: list[bytes]) -> bool:
    text = b" ".join(words[:4]).decode(errors="replace")
    return _TITLES.search(text) is not None


def _same_environment(
    words: list[bytes],
    maps: bytes,
    variables: dict[bytes, bytes],
    package: Path,
    prefix: Path | None,
) -> bool:
    if os.fsencode(package.parent) + b"/" in maps:
        return True
    if prefix is None:
        return False
    root = os.fsencode(prefix)
    return variables.get(b"VIRTUAL_ENV") == root or any(w.startswith(root + b"/") for w in words)


def _on_path(variables: dict[bytes, bytes], package: Path) -> bool:
    parts = variables.get(b"PYTHONPATH", b"").split(b":")
    return os.fsencode(package.parent) in [os.path.realpath(part) for part in parts if part]


def _variables(folder: Path) -> dict[bytes, bytes]:
    pairs = (line.partition(b"=") for line in _read(folder / "environ").split(b"\0"))
    return {name: value for name, _, value in pairs}


def _read(path: Path) -> bytes:
    """Give what this user may see: a process can end, or belong to someone else."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _parents(proc: Path, pid: int) -> Iterator[int]:
    while pid > 1:
        match = re.search(rb"^PPid:\s+(\d+)", _read(proc / str(pid) / "status"), re.MULTILINE)
        if match is None:
            return
        pid = int(match[1])
        yield pid
