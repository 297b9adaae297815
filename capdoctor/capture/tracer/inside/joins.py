"""Which side streams of a capture were joined again: vector clocks over records and waits.

A stream enters a capture by waiting for an event that was recorded in it, and is joined when the
origin is ordered after all of its work (CUDA programming guide, "Cross-stream Dependencies and
Events").
"""

from __future__ import annotations

from .calls import Call

Clock = dict[int, int]


class Joins:
    """The streams of one capture. Ticks count the operations on each."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.forks: dict[int, Call] = {}
        self._work: Clock = {}
        self._seen: dict[int, Clock] = {origin: {}}

    def launch(self, stream: int) -> None:
        """Count an operation on a stream that takes part."""
        clock = self._seen.get(stream)
        if clock is not None:
            self._work[stream] = clock[stream] = self._work.get(stream, 0) + 1

    def record(self, stream: int) -> Clock:
        """What an event that is recorded on the stream now stands for."""
        return dict(self._seen.setdefault(stream, {}))

    def wait(self, stream: int, clock: Clock, call: Call) -> None:
        """Order a stream after an event; ``call`` is remembered where it forks the stream."""
        own = self._seen.setdefault(stream, {})
        if stream != self.origin and stream not in self.forks:
            self.forks[stream] = call
            self.launch(stream)
        for other, ticks in clock.items():
            own[other] = max(own.get(other, 0), ticks)

    def unjoined(self) -> Call | None:
        """The call that forked the first stream whose work the origin is not ordered after.

        A stream with work that a hook counted comes before one on which only the fork is known.
        """
        known = self._seen[self.origin]
        left = [s for s in self.forks if known.get(s, 0) < self._work.get(s, 0)]
        busy = [s for s in left if self._work[s] > 1]
        return self.forks[(busy or left)[0]] if left else None
