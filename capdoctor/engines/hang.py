"""Whether an engine hangs: silent, and no process of it computes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# Timers of a waiting engine use a little; less than this share of one core is waiting.
_IDLE_SHARE = 0.02
# An engine that computes for hours without a word (a wait that spins) hangs, too.
_BUSY_FACTOR = 12
_CHANGING = re.compile(rb"[0-9]+|0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Hang:
    """Why an engine is taken to hang."""

    reason: str
    busy: bool


class HangWatch:
    """Decide from what was printed and computed; times in seconds since the engine's start.

    A line that was printed before in the same silence, numbers aside, is no sign of life: a
    waiting engine says once a minute that it waits.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._last_word = 0.0
        self._last_work = 0.0
        self._said: set[bytes] = set()
        self._used: dict[int, float] = {}
        self._mark = (0.0, 0.0)
        self._total = 0.0

    def printed(self, line: bytes, now: float) -> None:
        """Take in a line, or a progress bar's newest state."""
        shape = _CHANGING.sub(b"#", line)
        if shape not in self._said:
            if now - self._last_word < self._patience / 4:
                self._said.clear()
            self._last_word = now
        self._said.add(shape)

    def computed(self, seconds_by_pid: Mapping[int, float], now: float) -> None:
        """Take in the CPU seconds that each living process has used so far."""
        for pid, used in seconds_by_pid.items():
            self._total += max(0.0, used - self._used.get(pid, 0.0))
        self._used = dict(seconds_by_pid)
        since, total = self._mark
        window = max(1.0, self._patience / 10)
        if now - since >= window:
            if self._total - total > _IDLE_SHARE * (now - since):
                self._last_work = now
            self._mark = (now, self._total)

    def verdict(self, now: float) -> Hang | None:
        """Say whether it hangs by now."""
        silent, idle = now - self._last_word, now - max(self._last_work, self._last_word)
        if idle >= self._patience:
            text = f"no output and no CPU time in any process for {self._patience:g} s"
            return Hang(text, busy=False)
        if silent >= self._patience * _BUSY_FACTOR:
            text = f"no output for {silent:.0f} s, although processes are busy"
            return Hang(text, busy=True)
        return None
