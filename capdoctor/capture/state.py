"""Streams, events and captures as a small machine: what is allowed, and what breaks a capture.

Pure Python, no torch. Every request answers with a ``Fault`` or with None; a faulty request changes
nothing by itself, so that a checker may go on as if it had not been made. ``invalidate`` applies
what the fault does to the captures.

Sources: the CUDA programming guide for the rules; each fault below was seen on a GPU
(``tests/data/capture``), in all error modes, CUDA 13.0.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from enum import StrEnum

from capdoctor.capture.error_modes import Mode, forbids

LEGACY_STREAM = 0


class Status(StrEnum):
    """How the capture that a stream takes part in stands."""

    NONE = "none"
    ACTIVE = "active"
    INVALIDATED = "invalidated"


@dataclass(eq=False, slots=True)
class Capture:
    """One capture. ``work`` counts the operations of each stream that takes part.

    ``seen`` holds, for each stream, how much of every stream's work it is ordered after: a
    vector clock. A stream is joined when the origin is ordered after all of its work.
    """

    number: int
    origin: int
    mode: Mode
    thread: int
    status: Status = Status.ACTIVE
    over: bool = False
    work: dict[int, int] = field(default_factory=dict)
    seen: dict[int, dict[int, int]] = field(default_factory=dict)

    def unjoined(self) -> tuple[int, ...]:
        """Streams with work that the origin is not ordered after."""
        known = self.seen[self.origin]
        return tuple(s for s, n in self.work.items() if s != self.origin and known.get(s, 0) < n)


@dataclass(frozen=True, slots=True)
class Mark:
    """What an event was last recorded on: eager work (``capture`` is None) or captured work."""

    capture: Capture | None
    stream: int
    seen: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class EventState:
    """One event: where it was last recorded, None if never. External events make graph nodes."""

    external: bool = False
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule, and the captures that it would invalidate."""

    rule: str
    breaks: tuple[Capture, ...] = ()


class Machine:
    """All streams and captures of one device. Streams are integers, 0 is the legacy stream."""

    def __init__(self) -> None:
        self.captures: list[Capture] = []
        self._of: dict[int, Capture] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()

    def capture_of(self, stream: int) -> Capture | None:
        """The capture that the stream takes part in."""
        return self._of.get(stream)

    def status(self, stream: int) -> Status:
        """What ``cudaStreamIsCapturing`` says."""
        capture = self._of.get(stream)
        return Status.NONE if capture is None else capture.status

    def begin(self, stream: int, mode: Mode, thread: int) -> Capture | Fault:
        """Start a capture on the stream."""
        with self._lock:
            if stream == LEGACY_STREAM:
                return Fault("capture_on_legacy_stream")
            running = self._of.get(stream)
            if running is not None:
                return Fault("capture_begin_twice", (running,))
            capture = Capture(next(self._numbers), stream, mode, thread)
            capture.seen[stream] = {}
            self._of[stream] = capture
            self.captures.append(capture)
            return capture

    def end(self, stream: int, thread: int) -> Fault | None:
        """End the capture of the stream; whatever is wrong with it, it is over afterwards."""
        with self._lock:
            capture = self._of.get(stream)
            if capture is None:
                return Fault("capture_end_without_begin")
            if capture.origin != stream:
                return Fault("capture_end_other_stream", (capture,))
            fault = _end_fault(capture, thread)
            self._close(capture)
            return fault

    def _close(self, capture: Capture) -> None:
        capture.over = True
        self.captures.remove(capture)
        for stream in [s for s, c in self._of.items() if c is capture]:
            del self._of[stream]

    def invalidate(self, fault: Fault) -> None:
        """Apply what a fault does."""
        for capture in fault.breaks:
            capture.status = Status.INVALIDATED

    def launch(self, stream: int) -> Fault | None:
        """Put work on a stream: a node of its capture, or plain work."""
        capture = self._of.get(stream)
        if capture is None:
            return None
        if capture.status is Status.INVALIDATED:
            return Fault("after_invalidation")
        done = capture.work.get(stream, 0) + 1
        capture.work[stream] = done
        capture.seen[stream][stream] = done
        return None

    def wait_for_stream(self, stream: int, thread: int, rule: str) -> Fault | None:
        """Block the host on a stream, or ask whether it is done; ``rule`` names how."""
        capture = self._of.get(stream)
        if capture is None:
            return self.unsafe(thread, rule)
        if capture.status is Status.INVALIDATED:
            return Fault("after_invalidation")
        return Fault(rule, (capture,))

    def synchronize(self, thread: int) -> Fault | None:
        """Block the host on the whole device."""
        return self._forbidden("device_synchronize", thread, "device_synchronize")

    def unsafe(self, thread: int, rule: str) -> Fault | None:
        """Make a call that CUDA calls potentially unsafe while something captures."""
        return self._forbidden("unsafe", thread, rule)

    def _forbidden(self, kind: str, thread: int, rule: str) -> Fault | None:
        """The captures that forbid this kind of call to the thread, by their error modes."""
        with self._lock:
            hit = tuple(
                c for c in self.captures if forbids(kind, c.mode, own_thread=c.thread == thread)
            )
            if not hit:
                return None
            own = any(c.thread == thread for c in hit)
            return Fault(rule if own else "other_thread", hit)

    def record(self, event: EventState, stream: int) -> Fault | None:
        """Record an event on a stream."""
        with self._lock:
            capture = self._of.get(stream)
            if capture is None:
                event.mark = Mark(None, stream)
            elif capture.status is Status.INVALIDATED:
                return Fault("after_invalidation")
            elif event.external:
                self.launch(stream)
                event.mark = Mark(None, stream)
            else:
                event.mark = Mark(capture, stream, dict(capture.seen[stream]))
            return None

    def wait(self, stream: int, event: EventState) -> Fault | None:
        """Make later work of a stream wait for an event; a capture spreads that way."""
        mark = event.mark
        if mark is None:
            return None  # torch does nothing for an event that was never recorded
        with self._lock:
            waiting = self._of.get(stream)
            if waiting is not None and waiting.status is Status.INVALIDATED:
                return Fault("after_invalidation")
            if event.external:
                return self.launch(stream)
            if mark.capture is None:
                return None if waiting is None else Fault("wait_uncaptured_work", (waiting,))
            return self._wait_for_captured(stream, waiting, mark, mark.capture)

    def _wait_for_captured(
        self, stream: int, waiting: Capture | None, mark: Mark, capture: Capture
    ) -> Fault | None:
        if capture.over or capture.status is Status.INVALIDATED:
            return Fault("event_of_ended_capture", () if waiting is None else (waiting,))
        if stream == LEGACY_STREAM:
            return Fault("legacy_stream_waits", (capture,))
        if waiting is not None and waiting is not capture:
            return Fault("merge_captures", (waiting, capture))
        self._of[stream] = capture
        own = capture.seen.setdefault(stream, {})
        for other, count in mark.seen.items():
            own[other] = max(own.get(other, 0), count)
        return None

    def ask_event(self, event: EventState, thread: int, rule: str) -> Fault | None:
        """Synchronise on an event, query it or take its time; ``rule`` names how."""
        mark = event.mark
        if mark is None:
            return None
        if mark.capture is None:
            return self.unsafe(thread, rule)
        if mark.capture.over or mark.capture.status is Status.INVALIDATED:
            return Fault("event_of_ended_capture")
        return Fault("ask_captured_event", (mark.capture,))


def _end_fault(capture: Capture, thread: int) -> Fault | None:
    if forbids("capture_end", capture.mode, own_thread=thread == capture.thread):
        return Fault("capture_end_other_thread")
    if capture.status is Status.INVALIDATED:
        return Fault("after_invalidation")
    return Fault("unjoined_stream") if capture.unjoined() else None
