"""The few methods of torch that are wrapped: a graph's begin and end, and the uses of an event.

The use of an event that was recorded inside a capture fails where nothing captures any more; no
hook is on there, so the methods themselves look.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .calls import caller
from .events import Events
from .guard import Guard
from .watch import Watch

_EVENT = ("record", "wait", "synchronize", "query", "elapsed_time")
# From torch 2.14 on the end has a first half, which a program may call by itself.
_ENDS = ("capture_end", "capture_end_pre")
_STREAM = ("wait_event", "synchronize", "query")
_MISSING = object()


class Methods:
    """Wrappers around methods of three classes; ``undo`` puts the originals back."""

    def __init__(self, watch: Watch, guard: Guard, on_begin: Any, on_end: Any) -> None:
        self.watch = watch
        self.guard = guard
        self.events = Events(watch)
        self.on_begin = on_begin
        self.on_end = on_end
        self._undo: list[tuple[Any, str, Any, Any]] = []

    def wrap(self, graph: Any, event: Any, stream: Any) -> None:
        """Wrap the methods of a graph, an event and a stream class."""
        self._replace(graph, "capture_begin", self._begin(graph.capture_begin))
        for name in _ENDS:
            if hasattr(graph, name):
                self._replace(graph, name, self._end(getattr(graph, name)))
        for owner, names, wrapper in (
            (event, _EVENT, self._use_event),
            (stream, _STREAM, self._use_stream),
        ):
            for name in names:
                original = getattr(owner, name, None)
                if original is not None:
                    self._replace(owner, name, wrapper(original))

    def undo(self) -> None:
        """Put the originals back, where nobody has replaced them since."""
        for owner, name, old, ours in reversed(self._undo):
            if owner.__dict__.get(name) is not ours:
                continue
            if old is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
        self._undo.clear()

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, owner.__dict__.get(name, _MISSING), value))
        setattr(owner, name, value)

    def _begin(self, original: Callable[..., Any]) -> Callable[..., Any]:
        guard, watch = self.guard, self.watch

        @functools.wraps(original)
        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(graph, *args, **kwargs)
            except BaseException as error:
                guard.run(watch.begin_failed, error, caller(1))
                raise
            guard.run(self.on_begin, graph, caller(1))
            return result

        return capture_begin

    def _end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        guard, watch = self.guard, self.watch

        @functools.wraps(original)
        def capture_end(graph: Any, *args: Any, **kwargs: Any) -> Any:
            capture = guard.run(watch.ending, graph, caller(1))
            guard.clean_up(self.on_end, capture)
            try:
                result = original(graph, *args, **kwargs)
            except BaseException as error:
                if capture is not None:
                    guard.run(watch.ended, capture, error, caller(1))
                raise
            if capture is not None:
                guard.run(watch.ended, capture, None, caller(1))
            return result

        return capture_end

    def _use_event(self, original: Callable[..., Any]) -> Callable[..., Any]:
        guard, watch, events, name = self.guard, self.watch, self.events, original.__name__
        goes_on = name in ("record", "wait")

        @functools.wraps(original)
        def use(event: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(event, *args, **kwargs)
            except Exception as error:
                others = (*args, *kwargs.values())
                if not _is_told(error):
                    guard.run(events.failed, event, name, caller(1), error, others)
                raise
            if goes_on and (watch.running or watch.events):
                stream = args[0] if args else kwargs.get("stream")
                guard.run(events.done, event, name, stream, caller(1))
            return result

        return use

    def _use_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        guard, events, name = self.guard, self.events, original.__name__

        @functools.wraps(original)
        def use(stream: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(stream, *args, **kwargs)
            except Exception as error:
                event = args[0] if args else kwargs.get("event")
                if not _is_told(error):
                    guard.run(events.stream_failed, event, name, caller(1), error)
                raise

        return use


def _is_told(error: BaseException) -> bool:
    """Say whether a wrapper that was called inside the one that asks has handed it on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
        if trace.tb_frame.f_code.co_filename == _is_told.__code__.co_filename:
            return True
    return False
