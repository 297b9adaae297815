"""Every change on disk that the shop makes goes through these functions.

Each is one step that a kill can fall before or after; the tests count them and kill at each.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def write_new(path: Path, data: bytes, like: os.stat_result | None = None) -> None:
    """Write ``data`` to a new file and force it to the disk; mode and owner from ``like``."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        if like is not None:
            made = os.fstat(file.fileno())  # a folder may have given it its group
            if (like.st_uid, like.st_gid) != (made.st_uid, made.st_gid):
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
            os.fchmod(file.fileno(), like.st_mode & 0o7777)
        file.flush()
        os.fsync(file.fileno())


def move(source: Path, target: Path) -> None:
    """Put ``source`` in the place of ``target`` in one step and force the folder to the disk."""
    source.replace(target)
    sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    path.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder with everything in it."""
    shutil.rmtree(path, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make a folder that only its owner can read, with its parents."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def copy_labels(source: Path, target: Path) -> None:
    """Give ``target`` the extended attributes of ``source`` (SELinux labels, ...)."""
    for name in _labels(source):
        with contextlib.suppress(OSError):  # a label that we may not set is not worth a stop
            os.setxattr(target, name, os.getxattr(source, name))


def sync_folder(path: Path) -> None:
    """Force a folder's entries to the disk, where the file system can."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _labels(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listxattr(path)
    return []
