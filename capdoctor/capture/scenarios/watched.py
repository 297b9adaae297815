"""Streams and events that tell an ``Order`` what they do, and a torch that hands them out.

They wrap real (or virtual) ones, so that the device judges every call as ever.
"""

from __future__ import annotations

from typing import Any, Self

from capdoctor.capture.scenarios.ordering import Clock, Order


class WatchedStream:
    """A stream; everything it does not know itself is the wrapped stream's."""

    def __init__(self, raw: Any, watch: Watch) -> None:
        self.raw = raw
        self._watch = watch
        self._before: list[Any] = []

    def wait_event(self, event: Any) -> None:
        """Order later work of this stream after the event."""
        event = self._watch.event_of(event)
        self.raw.wait_event(event.raw)
        self._watch.order.wait(self.number, event.seen)

    def wait_stream(self, stream: Any) -> None:
        """Order later work of this stream after all work of another so far."""
        other = self._watch.stream_of(stream)
        self.raw.wait_stream(other.raw)
        self._watch.order.wait(self.number, self._watch.order.now(other.number))

    def record_event(self, event: Any = None) -> Any:
        """Record an event on this stream, a new one by default."""
        event = self._watch.new_event() if event is None else self._watch.event_of(event)
        event.record(self)
        return event

    @property
    def number(self) -> int:
        """The number by which the device knows the stream."""
        return int(self.raw.stream_id)

    def __enter__(self) -> Self:
        """Make it current."""
        context = self._watch.torch.cuda.stream(self.raw)
        context.__enter__()
        self._before.append(context)
        return self

    def __exit__(self, *error: object) -> None:
        """Make the former one current."""
        self._before.pop().__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        """Give what only the wrapped one has."""
        return getattr(self.raw, name)


class WatchedEvent:
    """An event that remembers what it was recorded after; nothing, if never recorded."""

    def __init__(self, raw: Any, watch: Watch) -> None:
        self.raw = raw
        self.seen: Clock = {}
        self._watch = watch

    def record(self, stream: Any = None) -> None:
        """Record on a stream, the current one by default."""
        chosen = self._watch.current_stream() if stream is None else self._watch.stream_of(stream)
        self.raw.record(chosen.raw)
        self.seen = self._watch.order.now(chosen.number)

    def wait(self, stream: Any = None) -> None:
        """Make a stream wait, the current one by default."""
        chosen = self._watch.current_stream() if stream is None else self._watch.stream_of(stream)
        chosen.wait_event(self)

    def __getattr__(self, name: str) -> Any:
        """Give what only the wrapped one has."""
        return getattr(self.raw, name)


class Watch:
    """One run's watched streams and events. ``torch`` is the real module."""

    def __init__(self, order: Order) -> None:
        import torch

        self.torch: Any = torch
        self.order = order

    def current_stream(self, device: Any = None) -> WatchedStream:
        """Give the current stream, watched."""
        return WatchedStream(self.torch.cuda.current_stream(device), self)

    def stream_of(self, stream: Any) -> WatchedStream:
        """Give the stream watched, whichever it is."""
        return stream if isinstance(stream, WatchedStream) else WatchedStream(stream, self)

    def event_of(self, event: Any) -> WatchedEvent:
        """Give the event watched."""
        return event if isinstance(event, WatchedEvent) else WatchedEvent(event, self)

    def new_stream(self, *args: Any, **kwargs: Any) -> WatchedStream:
        """Stand in for ``torch.Stream`` and ``torch.cuda.Stream``."""
        del args
        priority = kwargs.get("priority", 0)
        return WatchedStream(self.torch.cuda.Stream(priority=priority), self)

    def new_event(self, *args: Any, **kwargs: Any) -> WatchedEvent:
        """Stand in for ``torch.Event`` and ``torch.cuda.Event``."""
        del args
        kwargs.pop("device", None)
        return WatchedEvent(self.torch.cuda.Event(**kwargs), self)

    def stream_context(self, stream: Any) -> Any:
        """Stand in for ``torch.cuda.stream``."""
        return self.torch.cuda.stream(None if stream is None else self.stream_of(stream).raw)

    def here(self) -> int:
        """Give the number of the current stream."""
        return self.current_stream().number


class WatchedTorch:
    """The torch that a loaded source sees: the real one, with watched streams and events."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.cuda = _WatchedCuda(watch)
        self.Stream = watch.new_stream
        self.Event = watch.new_event

    def __getattr__(self, name: str) -> Any:
        """Give what torch has."""
        return getattr(self._watch.torch, name)


class _WatchedCuda:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.Stream = watch.new_stream
        self.Event = watch.new_event
        self.current_stream = watch.current_stream
        self.stream = watch.stream_context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watch.torch.cuda, name)
