"""What the CUDA driver itself wrote (``CUDA_LOG_FILE``, driver 12.9 or newer), call by call.

A line is ``[time][thread][CUDA][level] sentence``; some releases have a fifth bracket with the name
of the call, and the thread is a pthread id. Sentences that say why come first, then ``Returning 900
(CUDA_ERROR_...) from cuMemHostAlloc``. A sentence longer than the driver's buffer loses its end and
its line end, so the next line begins inside it (seen with NCCL's kernel names, driver 580).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_TIME = r"\[[^\[\]]{1,32}\]"
_BEGIN = re.compile(rf"(?={_TIME}\[\w{{1,20}}\]\[CUDA\]\[\w\])")
_LINE = re.compile(rf"{_TIME}\[(?P<thread>\w{{1,20}})\]\[CUDA\]\[\w\](?:\[\w+\])?\s*(?P<text>.+)")
_RETURNING = re.compile(r"Returning ([0-9]{1,9}) \((\w+)\) from (\w+)")
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class DriverCall:
    """A call that the driver refused: ``api``, the code and its ``name``, and the ``reasons``.

    ``lines`` are all of it as logged. Where the log ends without the refusal, ``api`` is empty and
    ``code`` 0: only reasons were told.
    """

    thread: str
    code: int
    name: str
    api: str
    reasons: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons and, last, what was returned."""
        returned = f"Returning {self.code} ({self.name}) from {self.api}"
        return (*self.reasons, returned) if self.api else self.reasons


def read_calls(path: Path | None) -> tuple[DriverCall, ...]:
    """Give the refused calls of a driver log in their order; a file that is not there has none."""
    if path is None:
        return ()
    try:
        with path.open("rb") as file:
            return parse_calls(file.read(_MOST_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ()


def parse_calls(text: str) -> tuple[DriverCall, ...]:
    """Give the refused calls in a text, and last the reasons that no refusal followed."""
    found: list[DriverCall] = []
    open_reasons: dict[str, list[tuple[str, str]]] = {}
    for line in _lines(text):
        match = _LINE.match(line)
        if match is None:
            continue
        thread, said = match["thread"], match["text"].strip()
        returned = _RETURNING.match(said)
        if returned is None:
            open_reasons.setdefault(thread, []).append((said, line))
            continue
        told = open_reasons.pop(thread, [])
        code, name, api = int(returned[1]), returned[2], returned[3]
        lines = (*(line for _, line in told), line)
        found.append(DriverCall(thread, code, name, api, tuple(said for said, _ in told), lines))
    for thread, told in open_reasons.items():
        reasons, lines = tuple(said for said, _ in told), tuple(line for _, line in told)
        found.append(DriverCall(thread, 0, "", "", reasons, lines))
    return tuple(found)


def _lines(text: str) -> list[str]:
    """Split at line ends and before each head: a cut sentence has no line end of its own."""
    parts = (part for line in text.split("\n") for part in _BEGIN.split(line))
    return [part.strip() for part in parts if part.startswith("[")]
