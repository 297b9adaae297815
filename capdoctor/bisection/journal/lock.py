"""One bisection at a time in a work folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capdoctor.bisection.journal.disk import writing
from capdoctor.errors import CannotDo


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the kernel lets go of it when the process dies.

    Raises:
        CannotDo: another process holds it.
    """
    path = folder / "lock"
    with writing(path):
        opened = path.open("a+")
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CannotDo(
                f"process {_holder(path)} is bisecting in {folder}",
                "wait for it, or stop it and resume",
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _holder(path: Path) -> str:
    text = path.read_text().strip()
    return text or "another"
