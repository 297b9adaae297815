"""Start an engine and see to it that nothing of it outlives its run.

This process stands between capdoctor and the engine. It takes orders on standard input and tells
what it sees on standard output, one JSON object a line. The first order starts the engine (see
``StartOrder``), ``{"grace": 3.0, "stacks": false}`` ends it. When the input closes, because whoever
gave the orders is gone, even by SIGKILL, it ends the engine likewise and leaves nothing behind.

It is the *sub-reaper* of everything below it: a process whose parent dies becomes a child of the
keeper instead of init's, also after ``setsid`` and a double fork, so that the tree below the keeper
is complete at any time. Imports are relative, so that this package starts without the rest of
capdoctor, in milliseconds.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

from . import ending, leavings, processes

SCAN_SECONDS = 0.5
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ORPHANED = ending.EndOrder(grace=1.0, stacks=False)


class Keeper:
    """One engine, from its start until the last of its processes is gone."""

    def __init__(self, order: processes.StartOrder) -> None:
        self._order = order
        self._boss = os.getppid()
        self._wakeup = _signals_to_pipe()
        self._segments = leavings.SegmentWatch()
        self._tree = processes.Tree(os.getpid(), order["marker"])
        self._orders = b""
        self._main = 0
        self._next_scan = 0.0

    def run(self) -> None:
        """Start the engine and serve until it is to be ended, then end it."""
        end = _ORPHANED
        try:
            self._main = processes.start(self._order)
            tell({"started": self._main, "at": time.time()})
            end = self._serve()
        except OSError as exc:
            tell({"failed": str(exc)})
        finally:
            self._end(end)

    def _serve(self) -> ending.EndOrder:
        poller = select.poll()
        for descriptor in (0, self._wakeup, self._segments.descriptor):
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        while True:
            self._scan_if_due()
            for pidfd in self._tree.pidfds_to_watch():
                poller.register(pidfd, select.POLLIN)
            ready = {descriptor for descriptor, _ in poller.poll(self._milliseconds())}
            self._notice(ready, poller)
            end = self._wish_to_end(ready)
            if end is not None:
                return end

    def _milliseconds(self) -> float:
        return max(0.0, self._next_scan - time.monotonic()) * 1000

    def _scan_if_due(self) -> None:
        if time.monotonic() >= self._next_scan:
            self._next_scan = time.monotonic() + SCAN_SECONDS
            self._tree.scan()
            self._segments.look(self._tree.pids())
            tell({"tree": self._tree.states()})

    def _notice(self, ready: set[int], poller: select.poll) -> None:
        if self._segments.descriptor in ready:
            self._tree.scan()
            self._segments.read(self._tree.pids())
        for gone in self._tree.notice_deaths(ready, poller.unregister):
            tell({"vanished": gone})
            if gone["pid"] == self._main:
                self._next_scan = 0.0  # who is left is asked at once

    def _wish_to_end(self, ready: set[int]) -> ending.EndOrder | None:
        """Return the order to end; a closed input and a signal to this process are one, too."""
        caught = os.read(self._wakeup, 4096) if self._wakeup in ready else b""
        if os.getppid() != self._boss or any(number in caught for number in _STOP_SIGNALS):
            return _ORPHANED
        if 0 not in ready:
            return None
        data = os.read(0, 65536)
        if not data:
            return _ORPHANED
        self._orders += data
        line, newline, self._orders = self._orders.partition(b"\n")
        return ending.EndOrder(**json.loads(line)) if newline else None

    def _end(self, order: ending.EndOrder) -> None:
        self._tree.scan()
        self._segments.read(self._tree.pids())
        self._segments.look(self._tree.pids(), once_more=True)
        left = ending.end_all(self._tree, order, lambda gone: tell({"vanished": gone}))
        self._segments.read(set())
        self._segments.adopt(self._tree.family())
        removed = leavings.remove_segments(self._segments)
        leavings.remove_folder(self._order["tmpdir"])
        tell({"gone": not left, "left": left, "removed": removed})


def tell(event: dict[str, Any]) -> None:
    """Say something to whoever listens; that nobody does any more is not an error."""
    data = json.dumps(event).encode() + b"\n"
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return


def _signals_to_pipe() -> int:
    """Turn signals into bytes on a pipe, so that the loop sees them in order with the rest."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (*_STOP_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _first_order() -> processes.StartOrder:
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(0, 1 << 20)
        if not piece:
            sys.exit(0)
        data += piece
    order: processes.StartOrder = json.loads(data)
    return order


def main() -> None:
    """Keep one engine."""
    processes.become_subreaper()
    Keeper(_first_order()).run()
