"""Where events were recorded, what waits for them, and uses of an event whose capture is over.

Torch's own trace of events (``torch._C._activate_gpu_trace``) is not used: it also reports every
tensor that is freed, and where that happens while an exception is on its way it loses the exception
(measured: torch 2.11.0, ``str(x)`` inside a capture ended in ``SystemError``).
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from .captures import Capture, Recorded
from .status import ACTIVE, INVALIDATED
from .watch import Watch

NAME = "torch.cuda.Event."


class Events:
    """Feeds a watch with what was done to events. Handles are the driver's."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def done(self, event: Any, method: str, stream: Any, frame: FrameType | None) -> None:
        """A method of an event has succeeded; ``stream`` is None for the current one."""
        handle = handle_of(event)
        if handle and method == "record":
            self._recorded(handle, _stream(stream), frame)
        elif handle and method == "wait":
            self._waited(handle, _stream(stream), frame)

    def failed(
        self,
        event: Any,
        method: str,
        frame: FrameType | None,
        error: BaseException | None,
        others: tuple[Any, ...] = (),
    ) -> None:
        """A method of an event has raised, ``others`` are its arguments."""
        handles = [handle_of(one) for one in (event, *others)]
        handle = next((one for one in handles if one in self.watch.events), handles[0])
        self.watch.event_failed(handle, NAME + method, frame, error)

    def stream_failed(
        self, event: Any, method: str, frame: FrameType | None, error: BaseException
    ) -> None:
        """A method of a stream has raised, perhaps over a generic ``torch.Event``."""
        handle = 0 if event is None else handle_of(event)
        self.watch.event_failed(handle, "torch.cuda.Stream." + method, frame, error)

    def wait_event_failed(self, events: list[Any], frame: FrameType | None) -> None:
        """``torch.Stream.wait_event`` has raised, over one of these events.

        Where the line does not say which, it is the event that a capture recorded last.
        """
        left = [h for h, recorded in self.watch.events.items() if self.watch.is_over(recorded)]
        named = [handle_of(event) for event in events]
        for handle in [h for h in named if h in left] or ([] if named else left[-1:]):
            self.watch.event_failed(handle, "torch.Stream.wait_event", frame, None)
            return

    def _recorded(self, event: int, stream: int, frame: FrameType | None) -> None:
        watch = self.watch
        capture = self._capture_of(stream)
        if capture is None:
            watch.events.pop(event, None)
            return
        call = watch.call(NAME + "record", frame, capture)._replace(stream=stream)
        watch.events[event] = Recorded(capture, capture.joins.record(stream), call)

    def _waited(self, event: int, stream: int, frame: FrameType | None) -> None:
        watch = self.watch
        recorded = watch.events.get(event)
        if recorded is None or recorded.capture not in watch.running:
            return
        call = watch.call(NAME + "wait", frame, recorded.capture)._replace(stream=stream)
        recorded.capture.joins.wait(stream, recorded.clock, call)
        watch.forked = True

    def _capture_of(self, stream: int) -> Capture | None:
        running = self.watch.running
        for capture in running:
            if capture.stream == stream:
                return capture
        if not running or self.watch.source.status(stream) not in (ACTIVE, INVALIDATED):
            return None
        ident = self.watch.source.capture_id(stream)
        return next((c for c in running if c.ident == ident), running[-1])


def handle_of(event: Any) -> int:
    """The driver's handle, 0 before the first record; generic events have it under another name."""
    return int(getattr(event, "cuda_event", 0) or getattr(event, "event_id", 0) or 0)


def _stream(stream: Any) -> int:
    if stream is None:
        stream = torch.cuda.current_stream()
    handle = getattr(stream, "cuda_stream", None)
    return int(stream.native_handle if handle is None else handle)
