"""The cheap look: which files of a package can matter to a fix, by a search for its markers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from capdoctor.model import FixSite, FixStatus
from capdoctor.vendored_fixes.contract import FixInfo


@dataclass(frozen=True)
class Found:
    """Files by name (relative to the package's parent folder), and what could not be opened."""

    files: dict[str, bytes] = field(default_factory=dict)
    problems: tuple[FixSite, ...] = ()


def look(folder: Path, fix: FixInfo) -> Found:
    """Read the Python files of the package in ``folder`` that hold one of the fix's markers.

    If there is one, the files of ``also_read`` come along. Measured on vLLM 0.33.0 (3,231
    files, 50 MB, warm cache): about 0.2 s, most of it opening files.
    """
    markers = [marker.encode() for marker in fix.markers]
    found: dict[str, bytes] = {}
    problems = [*_wrong_kind(folder, fix)]
    for name, path in python_files(folder):
        try:
            data = read_bytes(path)
        except OSError as error:
            problems.append(_unreadable(name, error))
            continue
        if any(marker in data for marker in markers):
            found[name] = data
    if found:
        for name in fix.also_read:
            beside = folder.parent / name
            if name not in found and beside.is_file():
                found[name] = read_bytes(beside)
    return Found(found, tuple(problems))


def python_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Give name and path of every ``.py`` file below ``folder``, through linked folders too."""
    seen: set[tuple[int, int]] = set()
    waiting = [(folder.name, str(folder))]
    while waiting:
        name, path = waiting.pop()
        place = Path(path).stat()
        if (place.st_dev, place.st_ino) in seen:
            continue
        seen.add((place.st_dev, place.st_ino))
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                inner = f"{name}/{entry.name}"
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        waiting.append((inner, entry.path))
                elif entry.name.endswith(".py") and _is_there(entry):
                    yield inner, entry.path


def _is_there(entry: os.DirEntry[str]) -> bool:
    """Leave out links to nothing: Python cannot import them either."""
    return not entry.is_symlink() or Path(entry.path).is_file()


def read_bytes(path: str | Path) -> bytes:
    """Read a file at once; for thousands of small files this is twice as fast as ``open``."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        data = os.read(handle, size + 1)
        while data and (len(data) > size or not size) and (more := os.read(handle, 1 << 20)):
            data += more  # it grows, or it is one of those that know no size
        return data
    finally:
        os.close(handle)


def _wrong_kind(folder: Path, fix: FixInfo) -> Iterator[FixSite]:
    for name in (*fix.homes, *fix.also_read):
        path = folder.parent / name
        if path.is_dir():
            yield FixSite(name, None, FixStatus.UNREADABLE, "is a folder, not a file")
        elif path.is_symlink() and not path.exists():
            yield FixSite(name, None, FixStatus.UNREADABLE, "is a link to nothing")


def _unreadable(name: str, error: OSError) -> FixSite:
    return FixSite(name, None, FixStatus.UNREADABLE, f"cannot be read: {error.strerror}")
