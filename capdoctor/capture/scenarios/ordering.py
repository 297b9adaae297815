"""Happens-before between streams, as vector clocks: who may read what another stream wrote.

A device does not report a missing order; it just computes with stale data. So the scenarios
watch every record and wait, and check each read against them.
"""

from __future__ import annotations

from collections.abc import Mapping

from capdoctor.capture.scenarios.outcome import OrderViolation

Clock = dict[int, int]


class Order:
    """The clocks of all streams of a run; streams are numbers, data have names."""

    def __init__(self) -> None:
        self._clocks: dict[int, Clock] = {}
        self._written: dict[str, tuple[int, int]] = {}

    def now(self, stream: int) -> Clock:
        """Give a copy of what the stream is ordered after: what an event would keep."""
        return dict(self._clocks.setdefault(stream, {}))

    def wait(self, stream: int, seen: Mapping[int, int]) -> None:
        """Order later work of the stream after what was seen."""
        clock = self._clocks.setdefault(stream, {})
        for other, count in seen.items():
            clock[other] = max(clock.get(other, 0), count)

    def wrote(self, what: str, stream: int) -> None:
        """Note that the stream writes the data called ``what``."""
        clock = self._clocks.setdefault(stream, {})
        clock[stream] = clock.get(stream, 0) + 1
        self._written[what] = (stream, clock[stream])

    def reads(self, what: str, stream: int) -> None:
        """Check a read.

        Raises:
            OrderViolation: the stream is not ordered after the latest write.
        """
        if what not in self._written:
            return
        writer, count = self._written[what]
        seen = self._clocks.setdefault(stream, {}).get(writer, 0)
        if seen < count:
            raise OrderViolation(
                f"{what} is read on a stream that does not wait for the stream that wrote it"
            )

    def barrier(self) -> None:
        """Order everything after everything: the host synchronised with the device."""
        total: Clock = {}
        for clock in self._clocks.values():
            for other, count in clock.items():
                total[other] = max(total.get(other, 0), count)
        self._clocks = {stream: dict(total) for stream in self._clocks}
