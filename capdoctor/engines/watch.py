"""One engine process from start to end: what it printed, how far it came, why it was ended."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from capdoctor.engines.clock import StageClock
from capdoctor.engines.control import KeptEngine, split_events
from capdoctor.engines.ended import Departure, Ended, How, Limits
from capdoctor.engines.hang import HangWatch
from capdoctor.engines.interrupts import Interrupts
from capdoctor.engines.lines import LineAssembler
from capdoctor.engines.listener import RunListener
from capdoctor.engines.runlog import RunLog, Stream
from capdoctor.model import Stage

# What is known of an engine aside from its lines: nothing, that it is imported, that it is ready.
Progress = Callable[[Stage], Literal["imported", "ready"] | None]

_TICK = 0.25
_READ = 1 << 16
# A front end that fails is often quicker than the process whose traceback tells why.
_LINGER = 2.0
_GRACE: Mapping[str, float] = {"ready": 5.0, "stopped_after_stage": 0.5}
_LONGEST_END = 60.0
_MOST_LEFT_IN_PIPES = 1000


class EngineWatch:
    """Watch one engine until it ends or is ended; use once."""

    def __init__(
        self,
        engine: KeptEngine,
        log: RunLog,
        limits: Limits,
        listener: RunListener,
        progress: Progress,
    ) -> None:
        self._engine, self._log, self._limits = engine, log, limits
        self._listener, self._progress = listener, progress
        self._start = time.monotonic()
        self._epoch = time.time()
        self._clock = StageClock(listener)
        self._hang = HangWatch(limits.hang_after)
        self._out, self._err = LineAssembler(), LineAssembler()
        self._events = b""
        self._main: int | None = None
        self._main_gone: float | None = None
        self._survivors_known = False
        self._living: dict[int, list[Any]] = {}
        self._departures: list[Departure] = []
        self._gone: bool | None = None
        self._left: tuple[int, ...] = ()
        self._failed: str | None = None
        self._ending = False
        self._told_time = 0.0
        self._selector = selectors.DefaultSelector()

    def run(self, interrupts: Interrupts) -> Ended:
        """Read, tell and judge until the engine is gone, and give how it went.

        Raises:
            CannotDo: the log cannot be written. Whatever is raised, the engine is gone.
        """
        try:
            self._listen_to(interrupts)
            how, why = self._until_over(interrupts)
            seconds = self._now()
            self._end(how, why)
            self._drain()
            return self._ended(how, why, seconds)
        finally:
            self._selector.close()
            self._engine.close(all_gone=self._gone is True)

    def _listen_to(self, interrupts: Interrupts) -> None:
        sources = {
            "out": self._engine.out,
            "err": self._engine.err,
            "events": self._engine.events,
            "signal": interrupts.descriptor,
        }
        for name, descriptor in sources.items():
            self._selector.register(descriptor, selectors.EVENT_READ, name)

    def _now(self) -> float:
        return time.monotonic() - self._start

    def _until_over(self, interrupts: Interrupts) -> tuple[How, str]:
        while True:
            self._take_in(_TICK)
            over = self._over(interrupts)
            if over is not None:
                return over
            self._tell_time()

    def _tell_time(self) -> None:
        now = self._now()
        if now - self._told_time >= _TICK:
            self._told_time = now
            self._listener.time_passed(now)

    def _over(self, interrupts: Interrupts) -> tuple[How, str] | None:
        """Say why the run is over by now, the strongest reason first."""
        now = self._now()
        if interrupts.caught is not None:
            return "interrupted", f"interrupted by {interrupts.caught.name}"
        progress = self._progress(self._clock.current)
        if progress == "ready":
            return "ready", "the engine is ready"
        if progress == "imported":
            self._clock.imported(now)
        if self._main_gone is not None and self._settled(now):
            return "exited", "the engine process ended"
        if self._gone is not None:
            return "lost", "the process that keeps the engine was ended by somebody else"
        return self._to_be_ended(now)

    def _settled(self, now: float) -> bool:
        """Whether nothing more is to be expected after the end of the first process."""
        waited = now - (self._main_gone or now)
        return waited > _LINGER or (self._survivors_known and not self._living)

    def _to_be_ended(self, now: float) -> tuple[How, str] | None:
        limits = self._limits
        if limits.stop_after is not None and self._clock.has_passed(limits.stop_after):
            return "stopped_after_stage", f"stage {limits.stop_after.value} has passed"
        if limits.timeout is not None and now >= limits.timeout:
            return "timed_out", f"not ready after {limits.timeout:g} s"
        hang = self._hang.verdict(now)
        return ("hung", hang.reason + self._stopped()) if hang else None

    def _stopped(self) -> str:
        stopped = [pid for pid, state in self._living.items() if state[4] in "Tt"]
        names = ", ".join(f"{self._log.names.get(pid, 'process')} {pid}" for pid in stopped)
        return f"; stopped by a signal: {names}" if stopped else ""

    def _take_in(self, patience: float) -> bool:
        """Read what is there, waiting ``patience`` seconds for it; whether there was anything."""
        ready = self._selector.select(patience)
        for key, _ in ready:
            if key.data == "events":
                self._read_events()
            elif key.data == "signal":
                self._selector.unregister(key.fd)
            else:
                self._read_stream(key.data)
        return bool(ready)

    def _read_stream(self, name: Stream) -> None:
        out = name == "out"
        descriptor = self._engine.out if out else self._engine.err
        assembler = self._out if out else self._err
        data = _read(descriptor)
        if data is None:
            return
        if not data:
            self._selector.unregister(descriptor)
        for line in assembler.push(data):
            self._line(line, name)
        pending = assembler.pending()
        if pending and not self._ending:
            self._hang.printed(pending[-200:], self._now())
            self._clock.line(_newest_state(pending), self._now())

    def _line(self, line: bytes, name: Stream) -> None:
        now = self._now()
        self._log.write(line, name, now)
        if self._ending:
            return
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        self._hang.printed(line, now)
        self._clock.line(text, now)
        self._listener.line_printed(text, now)

    def _read_events(self) -> None:
        data = _read(self._engine.events)
        if data is None:
            return
        if not data:
            self._selector.unregister(self._engine.events)
            self._gone = self._gone or False
        events, self._events = split_events(self._events, data)
        for event in events:
            self._on_event(event)

    def _on_event(self, event: dict[str, Any]) -> None:
        if "started" in event:
            self._main = event["started"]
            self._epoch = event["at"]
        elif "tree" in event:
            self._living = {state[0]: state for state in event["tree"]}
            self._survivors_known = self._main_gone is not None
            self._hang.computed({pid: s[3] for pid, s in self._living.items()}, self._now())
        elif "vanished" in event:
            self._on_vanished(event["vanished"])
        elif "failed" in event:
            self._failed = event["failed"]
            self._main_gone, self._survivors_known = self._now(), True
        elif "gone" in event:
            self._gone, self._left = event["gone"], tuple(event["left"])

    def _on_vanished(self, gone: dict[str, Any]) -> None:
        self._living.pop(gone["pid"], None)
        if gone["pid"] == self._main:
            self._main_gone, self._survivors_known = self._now(), False
        seconds = max(0.0, gone["at"] - self._epoch)
        departure = Departure(gone["pid"], gone["title"], seconds, gone["status"], self._ending)
        self._departures.append(departure)

    def _end(self, how: How, why: str) -> None:
        """Have everything ended and wait for the word that it is."""
        self._listener.run_ending(why)
        if how != "exited" or self._living:
            self._drain()
            self._log.split()
            self._ending = True
        self._engine.end(grace=_GRACE.get(how, 1.0), stacks=how in ("hung", "timed_out"))
        deadline = time.monotonic() + _LONGEST_END
        while self._gone is None and time.monotonic() < deadline:
            self._take_in(_TICK)

    def _drain(self) -> None:
        """Take what is in the pipes by now."""
        for _ in range(_MOST_LEFT_IN_PIPES):
            if not self._selector.get_map() or not self._take_in(0):
                break
        self._flush()

    def _flush(self) -> None:
        for line in self._out.flush():
            self._line(line, "out")
        for line in self._err.flush():
            self._line(line, "err")

    def _ended(self, how: How, why: str, seconds: float) -> Ended:
        well = how in ("ready", "stopped_after_stage")
        return Ended(
            how=how,
            why=why,
            seconds=seconds,
            main_pid=self._main,
            stage=self._clock.current,
            spans=self._clock.spans(seconds if well else None),
            departures=self._departures,
            left=self._left,
            names=self._log.names,
            codes=self._log.codes,
            failed_to_start=self._failed,
            last_line=self._log.last_line.decode("utf-8", "replace").strip(),
        )


def _read(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, _READ)
    except BlockingIOError:
        return None


def _newest_state(pending: bytes) -> str:
    """Give the last state of a line that is written over and over."""
    states = [part for part in pending.split(b"\r") if part.strip()]
    return states[-1].decode("utf-8", "replace") if states else ""
