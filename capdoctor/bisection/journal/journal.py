"""An append-only file of JSON lines; a line counts once it is whole and on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from capdoctor.bisection.journal.disk import writing
from capdoctor.errors import CannotDo
from capdoctor.model import Json

Event = dict[str, Json]


class Journal:
    """The journal of one bisection. ``append`` returns when the line is safe."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, event: Mapping[str, Json]) -> None:
        """Write one event and wait until it is on disk.

        Raises:
            CannotDo: the disk is full or the file cannot be written.
        """
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        new = not self.path.exists()
        with writing(self.path):
            with self.path.open("ab") as file:
                _drop_torn_line(self.path)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if new:
                _sync_folder(self.path.parent)

    def events(self) -> list[Event]:
        """Return the whole events; a torn last line is left out.

        Raises:
            CannotDo: the file is missing, or a line before the last is damaged.
        """
        return list(self._events())

    def _events(self) -> Iterator[Event]:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise CannotDo(
                f"{self.path.parent} holds no bisection ({error.strerror})",
                "give the work folder that a bisection has printed",
            ) from error
        lines = data.split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            yield _parse(self.path, number, line)


def _parse(path: Path, number: int, line: bytes) -> Event:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise CannotDo(
            f"line {number} of {path} is damaged",
            "cut the file before that line and resume: the runs after it are made again",
        )
    return event


def _drop_torn_line(path: Path) -> None:
    """Cut off what a kill in the middle of a write has left behind."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if size and file.read(1) != b"\n":
            file.seek(0)
            os.truncate(path, file.read().rfind(b"\n") + 1)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
