"""One change of a target at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes import disk
from capdoctor.vendored_fixes.journal import target_folder

WAIT = 60.0  # seconds; a change takes about one
_STEP = 0.05


@contextmanager
def locked(package: Path, wait: float = WAIT) -> Iterator[None]:
    """Hold the target's lock; the kernel gives it back when the process dies.

    The package's folder itself is locked, so that users with other state folders are kept out
    too; where the file system cannot do that, a file in the state folder is.

    Raises:
        CannotDo: another process still holds it after ``wait`` seconds.
    """
    handle = os.open(package, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _can_lock(handle):
            os.close(handle)
            handle = _state_lock(package)
        _acquire(handle, package, wait)
        yield
    finally:
        os.close(handle)


def _can_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.flock(handle, fcntl.LOCK_UN)
    return True


def _state_lock(package: Path) -> int:
    home = target_folder(package)
    disk.make_folder(home)
    return os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _acquire(handle: int, package: Path, wait: float) -> None:
    end = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise CannotDo(
                    f"Another capdoctor has been changing {package} for {wait:.0f} s.",
                    "Wait for it, or end it: what it began is made good by the next call.",
                ) from None
            time.sleep(_STEP)
        else:
            return
