"""An error of the disk as a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capdoctor.errors import CannotDo


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say what cannot be written and why.

    Raises:
        CannotDo: instead of any OSError.
    """
    try:
        yield
    except OSError as error:
        raise CannotDo(
            f"{path} cannot be written: {error.strerror}", "free some disk space, then resume"
        ) from error
