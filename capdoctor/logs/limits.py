"""How much of a hostile or huge log is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that hold memory constant; what is beyond them is counted, not kept.

    ``block`` and ``line`` in bytes, ``message`` in characters, the others are counts per log.
    ``careful_lines`` is how many lines are read one by one before only new kinds of error, marks
    and the end of the log are still looked at. ``whole`` is the size in bytes up to which every
    line is looked at.
    """

    block: int = 1 << 20
    line: int = 64 << 10
    message: int = 16 << 10
    whole: int = 512 << 10
    careful_lines: int = 100_000
    tail: int = 512 << 10
    nodes: int = 2_000
    frames: int = 400
    events: int = 2_000
    lines: int = 20_000
    records: int = 2_000
    marks: int = 4_000
    runs: int = 500
    members: int = 10_000


DEFAULT_LIMITS = Limits()
