"""What the CUDA driver itself wrote (``CUDA_LOG_FILE``, driver 12.9 or newer).

A line is ``[time][thread][CUDA][E] sentence``; some releases have a fifth bracket with the name of
the call. torch probes the context at every start, which leaves harmless lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(
    r"^\[[\d:.\s-]+\]\[(?P<thread>\w+)\]\[CUDA\]\[(?P<level>\w)\](?:\[\w+\])?\s*(?P<text>.+)$"
)
_HARMLESS = ("CUDA_ERROR_INVALID_CONTEXT) from cuCtxGetDevice", "from cuCtxGetDevice_v2")
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DriverLog:
    """The sentences that say something, and where they came from."""

    sentences: tuple[str, ...] = ()
    file: Path | None = None

    @property
    def text(self) -> str:
        """All sentences, one a line."""
        return "\n".join(self.sentences)


NO_DRIVER_LOG = DriverLog()


def parse_driver_lines(text: str) -> tuple[str, ...]:
    """Give the sentences of driver lines in a text, harmless ones left out."""
    found: list[str] = []
    explained: dict[str, str] = {}  # by thread: the sentence before the code that it explains
    for line in text.split("\n"):
        match = _LINE.match(line.strip())
        if match is None:
            continue
        said, reason = match["text"].strip(), explained.pop(match["thread"], None)
        if any(harmless in said for harmless in _HARMLESS):
            continue
        found += [reason] if reason else []
        if said.startswith("Returning "):
            found.append(said)
        else:
            explained[match["thread"]] = said
    return tuple(dict.fromkeys([*found, *explained.values()]))


def read_driver_log(file: Path | None) -> DriverLog:
    """Read a driver log; a file that is missing or cannot be read counts as empty."""
    if file is None:
        return NO_DRIVER_LOG
    try:
        with file.open("rb") as stream:
            text = stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return NO_DRIVER_LOG
    return DriverLog(parse_driver_lines(text), file)
