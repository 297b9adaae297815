"""Knows the running captures and names the first operation that broke each."""

from __future__ import annotations

import itertools
import sys
import threading
from types import FrameType
from typing import Any

from .calls import (
    Call,
    Hidden,
    as_json,
    called_by_program,
    make_call,
    of_program,
    source_of,
    thread_names,
    walk_traceback,
)
from .captures import Capture, Recorded
from .errors import chain_of, error_json, is_drivers, raised_json, slot_that_raised
from .journal import Journal
from .names import callable_name, frame_name
from .status import INVALIDATED

_UNSEEN = "native code"


class Watch:
    """What all hooks of a process tell, and what follows from it.

    ``source`` is asked about streams: ``status.DriverStatus`` or what stands in for it.
    """

    def __init__(self, journal: Journal, source: Any, hidden: Hidden) -> None:
        self.journal = journal
        self.source = source
        self.hidden = hidden
        self.running: list[Capture] = []
        self.captures = 0  # that have ended
        self.forked = False  # whether side streams take part in a running capture
        self.events: dict[int, Recorded] = {}
        self.threads: dict[int, str] = {}
        self._told = 0
        self._numbers = itertools.count(1)

    def forget(self) -> None:
        """In a forked child: nothing captures here."""
        self.running.clear()
        self.events.clear()

    def begun(self, graph: Any, stream: int) -> Capture:
        """A capture has begun on the stream."""
        self.journal.open()
        capture = Capture(next(self._numbers), stream, graph, self.source)
        # Of captures whose end was not seen: a stream and a graph take part in one at a time.
        self.running = [c for c in self.running if c.stream != stream and c.graph != capture.graph]
        self.running.append(capture)
        self.threads.clear()
        return capture

    def begin_failed(self, error: BaseException, frame: FrameType | None) -> None:
        """A capture could not begin; inside another one the hooks of that have noticed."""
        if self.running and self.broken():
            return
        call = self.call("torch.cuda.CUDAGraph.capture_begin", frame)
        self._write("offence", call, how="raised", error=error_json(error))

    def ending(self, graph: Any, frame: FrameType | None) -> Capture | None:
        """A capture is about to end; give it, None if its begin or this end is not news."""
        capture = next((c for c in self.running if c.graph == id(graph)), None)
        if capture is None or capture.ending:
            return None
        capture.ending = True
        if self.broken() is not None:
            self.before("torch.cuda.CUDAGraph.capture_end", frame)
        return capture

    def ended(self, capture: Capture, error: BaseException | None, frame: FrameType | None) -> None:
        """A capture has ended, well if ``error`` is None."""
        if capture in self.running:
            self.running.remove(capture)
        self.forked = any(left.joins.forks for left in self.running)
        # The end's own error is chained to what was on its way out when it was called.
        under_way = sys.exc_info()[1] if error is None else error.__context__
        chain = chain_of(under_way, capture.outer)
        capture.outer = None  # with all frames that it holds
        if not capture.broken:
            if error is not None:
                self._failed_at_end(capture, error, chain, frame)
            else:
                self._left_by(capture, chain)
        self.captures += 1
        if capture.broken or capture.suspects.told or error is not None:
            self.journal.write(
                "ended",
                number=capture.number,
                error=error_json(error),
                raised=raised_json(chain, self.hidden),
            )

    def tell_count(self) -> None:
        """Write down how many captures have ended, where that is news."""
        if self.captures != self._told:
            self._told = self.captures
            self.journal.write("captures", count=self.captures)

    def _failed_at_end(
        self,
        capture: Capture,
        error: BaseException,
        chain: list[BaseException],
        frame: FrameType | None,
    ) -> None:
        fork = capture.joins.unjoined() if "unjoined" in str(error) else None
        capture.broken = True
        if fork is not None:
            self._write("offence", fork, how="unjoined")
        elif not self._left_by(capture, chain):
            call = self.call("torch.cuda.CUDAGraph.capture_end", frame, capture)
            self._write("offence", call, how="at_end", earlier=self._last(capture))

    def _left_by(self, capture: Capture, chain: list[BaseException]) -> bool:
        """Exceptions leave the capture: name the operation that raised the first, if one did."""
        for first in chain:
            places = set(walk_traceback(first.__traceback__, self.hidden))
            suspect = capture.suspects.raised(first, places)
            if suspect is not None:
                return self._raised(capture, suspect, first)
        for first in chain:
            slot = slot_that_raised(first, self.hidden)
            if slot is not None:
                name, places_of_slot = slot
                call = self.call(name, None, capture)._replace(places=places_of_slot)
                return self._raised(capture, call, first)
        return False

    def _raised(self, capture: Capture, call: Call, error: BaseException) -> bool:
        capture.broken = True
        self._write("offence", call, how="raised", error=error_json(error))
        return True

    def broken(self) -> Capture | None:
        """A running capture that is invalidated and of which that was not known yet."""
        for capture in self.running:
            if not capture.broken:
                capture.ask()
                if capture.answer.value == INVALIDATED:
                    return capture
        return None

    def _take_broken(self) -> list[Capture]:
        """All captures that are broken and were not known to be: one call may break several.

        All are marked at once: what writes them down runs Python code, at which the hooks look too.
        """
        found: list[Capture] = []
        while (capture := self.broken()) is not None:
            capture.broken = True
            found.append(capture)
        return found

    def before(self, function: Any, frame: FrameType | None) -> None:
        """Something is about to be called: whatever broke a capture by now was not this.

        For a ``"return"`` it stands in the current line of the function that is left.
        """
        for capture in self._take_broken():
            self._unseen(capture, function, frame)

    def _unseen(self, capture: Capture, function: Any, frame: FrameType | None) -> None:
        within = called_by_program(frame, self.hidden) if function != "return" else None
        if within is not None and frame is not function:
            self._write("offence", self.call(within, frame, capture), how="invalidated")
            return
        call = make_call(_UNSEEN, frame, self.hidden, **_of(capture))
        if function == "return" and call.places:
            call = call._replace(operation=source_of(of_program(call.places)[0]) or _UNSEEN)
        noticed = self.call(function, frame, capture)
        self._write(
            "offence", call, how="unseen", earlier=self._last(capture), noticed=as_json(noticed)
        )

    def after(
        self,
        function: Any,
        frame: FrameType | None,
        error: BaseException | None = None,
        pending: Any = None,
    ) -> bool:
        """Something was called: if a capture is broken now, it was this. Say whether it was."""
        broken = self._take_broken()
        for capture in broken:
            call = self.call(function, frame, capture, pending).deepened(error, self.hidden)
            how = "invalidated" if capture.thread == call.thread else "other_thread"
            self._write("offence", call, how=how, error=error_json(error))
        return bool(broken)

    def suspect(
        self,
        function: Any,
        frame: FrameType | None,
        error: BaseException | None = None,
        pending: Any = None,
    ) -> None:
        """An operation raised and the capture goes on: it counts if the exception leaves it."""
        thread = threading.get_ident()
        for capture in self.running:
            if capture.broken or capture.thread != thread:
                continue
            call = self.call(function, frame, capture, pending).deepened(error, self.hidden)
            new = capture.suspects.add(call, error)
            if new is not None:
                self._write("suspect", call, error=new.error)

    def done(self, function: Any, frame: FrameType) -> None:
        """Remember the last thing that was done in the calling thread's captures."""
        for capture in self.running:
            capture.last = (function, (frame.f_code, frame.f_lineno))

    def is_capturing_here(self) -> bool:
        """Say whether the calling thread runs a capture."""
        thread = threading.get_ident()
        return any(capture.thread == thread for capture in self.running)

    def is_over(self, recorded: Recorded) -> bool:
        """Say whether the capture in which an event was recorded has ended."""
        return recorded.capture not in self.running

    def event_failed(
        self, event: int, function: str, frame: FrameType | None, error: BaseException | None
    ) -> None:
        """A wait or the like raised: was the event recorded in a capture that is over?"""
        recorded = self.events.get(event)
        refused = error is None or is_drivers(error)
        if recorded is None or recorded.capture in self.running or not refused:
            if self.running and not self.after(function, frame, error):
                self.suspect(function, frame, error)
            return
        inside = next((c for c in self.running if c.thread == threading.get_ident()), None)
        if inside is not None and inside.broken:
            return
        if inside is not None:
            inside.broken = True
        call = self.call(function, frame, inside)
        earlier = as_json(recorded.call)
        self._write("offence", call, how="event_outside", earlier=earlier, error=error_json(error))

    def call(
        self,
        function: Any,
        frame: FrameType | None,
        capture: Capture | None = None,
        pending: Any = None,
    ) -> Call:
        """A call as it is remembered; a frame as the function stands for what runs in it."""
        if isinstance(function, FrameType):
            function = frame_name(function)
        more = {} if capture is None else _of(capture)
        called_as = None if pending is None else callable_name(pending)
        return make_call(function, frame, self.hidden, called_as=called_as, **more)

    def _last(self, capture: Capture) -> dict[str, Any] | None:
        if capture.last is None:
            return None
        function, place = capture.last
        name = function if isinstance(function, str) else self.call(function, None).operation
        return as_json(Call(name, None, (place,), capture.thread, **_of(capture)))

    def _write(self, kind: str, call: Call, **values: Any) -> None:
        names = {**self.threads, **thread_names()}
        self.journal.write(kind, call=as_json(call), number=call.number, threads=names, **values)


def _of(capture: Capture) -> dict[str, Any]:
    return {"stream": capture.stream, "number": capture.number, "capture": capture.ident}
