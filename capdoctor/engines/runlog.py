"""The log of a run on disk: the lines of both streams in order, and when each came."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from io import BufferedWriter
from types import TracebackType
from typing import Literal, Self

from capdoctor.engines.rundir import RunFolder, writing
from capdoctor.errors import CannotDo

Stream = Literal["out", "err"]
_PREFIX = re.compile(rb"^\((\w+) pid=(\d+)\)")
_FAILED = re.compile(rb"Failed core proc\(s\): \{([^}]*)\}")
_FAILED_ONE = re.compile(rb"'([^']+)': (-?\d+)")
_DIED = re.compile(rb"Worker proc (\S+) died unexpectedly.*?exit ?code[ :=]+(-?\d+)")


class RunLog:
    """Write the lines; learn the names of processes and the exit codes that they tell.

    After `split` lines go to another file: what an engine prints while it is being ended is no
    evidence of why it failed.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self.names: dict[int, str] = {}
        self.codes: dict[str, int] = {}
        self.last_line = b""
        with writing(folder.log):
            self._log = folder.log.open("wb", buffering=0)
            self._timing: BufferedWriter | None = folder.timing.open("wb")

    def write(self, line: bytes, stream: Stream, seconds: float) -> None:
        """Append a line.

        Raises:
            CannotDo: the disk is full.
        """
        with writing(self._folder.log):
            self._log.write(line)
            if self._timing is not None:
                self._timing.write(b"%.3f\t%s\n" % (seconds, stream.encode()))
        self.last_line = line
        prefix = _PREFIX.match(line)
        if prefix:
            self.names[int(prefix[2])] = prefix[1].decode()
        if b"proc" in line:
            self._learn_codes(line)

    def _learn_codes(self, line: bytes) -> None:
        failed = _FAILED.search(line)
        for name, code in _FAILED_ONE.findall(failed[1]) if failed else ():
            self.codes[name.decode()] = int(code)
        died = _DIED.search(line)
        if died:
            self.codes[died[1].decode()] = int(died[2])

    def split(self) -> None:
        """From here on write to the other file."""
        self.close()
        self._timing = None
        with writing(self._folder.after):
            self._log = self._folder.after.open("wb", buffering=0)

    def close(self) -> None:
        """Close the files.

        Raises:
            CannotDo: the disk is full.
        """
        with writing(self._folder.log):
            self._log.close()
            if self._timing is not None:
                self._timing.close()

    def __enter__(self) -> Self:
        """Give this log."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files; the error that is under way is the one that counts."""
        with suppress(CannotDo) if kind else nullcontext():
            self.close()
