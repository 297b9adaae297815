"""One start of an engine: gathers what its lines say, and knows when another one begins."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from capdoctor.logs.frames import cpp_frame
from capdoctor.logs.hints import allocator_assert, engine_args, version_hints
from capdoctor.logs.limits import Limits
from capdoctor.logs.markers import Marker
from capdoctor.logs.nodes import NodeCollector
from capdoctor.logs.peel import Peeled
from capdoctor.logs.records import RecordTracker
from capdoctor.logs.signs import Sign
from capdoctor.logs.stages import Progress, StageTracker
from capdoctor.logs.values import (
    UNNAMED,
    AllocatorAssert,
    CallSite,
    CaptureBar,
    Death,
    EngineArgs,
    Interrupt,
    Line,
    NativeEvent,
    Run,
    StackFrame,
    StageMark,
    StreamId,
    VersionHint,
)
from capdoctor.model import Stage

_SITES = 1_000
_STREAMS = 4_096
_HINTS = 500
_ATTACH = 40  # lines between a native event and the C++ frames that belong to it
_CHARS = 24 << 20  # of all kept lines together
_FRONT = {"vllm_logo", "vllm_api_server", "vllm_args", "sglang_args"}


class RunCollector:
    """Everything of one run while it is being read."""

    def __init__(self, number: int, first_line: int, limits: Limits) -> None:
        self.number, self.first_line, self.last_line = number, first_line, first_line
        self._limits = limits
        self.tracker = StageTracker()
        self.nodes = NodeCollector(limits)
        self.records = RecordTracker(limits)
        self.marks: list[StageMark] = []
        self._late_marks: deque[StageMark] = deque(maxlen=limits.marks // 4)
        self._bars: dict[tuple[str, str, int, Stage, int], CaptureBar] = {}
        self.events: list[NativeEvent] = []
        self._event_frames: dict[int, list[StackFrame]] = {}
        self._last_event: dict[StreamId, tuple[int, int]] = {}
        self.deaths: list[Death] = []
        self.interrupts: list[Interrupt] = []
        self.versions: list[VersionHint] = []
        self.asserts: list[AllocatorAssert] = []
        self.args: list[EngineArgs] = []
        self._sites: dict[tuple[str, int], CallSite] = {}
        self._lines: list[Line] = []
        self._late_lines: deque[Line] = deque(maxlen=limits.lines // 2)
        self._chars = 0
        self.streams: dict[StreamId, None] = {}
        self._starts: set[tuple[str, str | None]] = set()
        self.dropped = 0

    # -- what belongs to it -------------------------------------------------------------------

    def begins_anew(self, marker: Marker, stream: StreamId) -> bool:
        """Whether a marker that can open a run opens another one here."""
        if not self.marks:
            return False
        if marker.id == "container_banner":
            return True
        if marker.id == "platform":
            return self._front_end_is_gone() and stream.role in ("frontend", "unknown")
        if marker.id in _FRONT:
            again = (marker.id, stream.ip) in self._starts or self._front_end_is_gone()
            return self._past_config(marker, stream) or (again and self.failed)
        return self._engine_begins_anew(marker, stream)

    def _engine_begins_anew(self, marker: Marker, stream: StreamId) -> bool:
        again = (marker.id, stream.name) in self._starts
        if self.tracker.current in (Stage.SERVING, Stage.SHUTDOWN):
            return again or "_DP" not in (stream.name or "")  # an engine may be added later
        if marker.id == "sglang_dist":  # a draft model prints it again
            return False
        return again and (self.failed or self._past(Stage.DEVICE_INIT))

    @property
    def failed(self) -> bool:
        """Whether anything in it went wrong."""
        return bool(self.nodes.count or self.deaths or self.events)

    def _past(self, stage: Stage) -> bool:
        return self.tracker.has_passed(stage)

    def _past_config(self, marker: Marker, stream: StreamId) -> bool:
        """Another node of one engine prints its arguments too, from another container."""
        fronts = {key for name, key in self._starts if name in _FRONT}
        here = stream.ip is None or not fronts or (marker.id, stream.ip) in self._starts
        return self._past(Stage.CONFIG) and (here or self.failed)

    def _front_end_is_gone(self) -> bool:
        return self.nodes.raw_front_end or any(i.kind == "ctrl_c" for i in self.interrupts)

    # -- what is taken in ---------------------------------------------------------------------

    def take_progress(self, progress: Progress, stream: StreamId) -> None:
        """Keep a stage mark and the last state of a capture bar."""
        marker = progress.marker
        if marker is not None and marker.start and len(self._starts) < _STREAMS:
            key = stream.ip if marker.id in _FRONT else stream.name
            self._starts.add((marker.id, key))
        mark, bar = progress.mark, progress.bar
        if mark is not None:
            full = len(self.marks) >= self._limits.marks
            (self._late_marks if full else self.marks).append(mark)
        if bar is not None:
            key_of_bar = (bar.label, bar.mode, bar.total, bar.stage, bar.done)
            if len(self._bars) < self._limits.marks:
                self._bars.pop(key_of_bar, None)
                self._bars[key_of_bar] = bar

    def take_signs(self, signs: list[Sign], stream: StreamId) -> None:
        """Keep native events, deaths and interrupts."""
        for sign in signs:
            if isinstance(sign, NativeEvent):
                if self._has_room(self.events):
                    self._last_event[stream] = (len(self.events), sign.line)
                    self.events.append(sign)
            elif isinstance(sign, Death):
                if self._has_room(self.deaths):
                    self.deaths.append(sign)
            elif self._has_room(self.interrupts):
                self.interrupts.append(sign)

    def take_native_frame(self, line: Peeled) -> bool:
        """Give a C++ frame to the native event just before it; False if there is none."""
        if "frame #" not in line.text and line.text[:1] != "#":
            return False
        index, at = self._last_event.get(line.stream, (-1, 0))
        frame = cpp_frame(line.text) if index >= 0 and line.number - at <= _ATTACH else None
        if frame is None:
            return False
        frames = self._event_frames.setdefault(index, [])
        if len(frames) < self._limits.frames:
            frames.append(frame)
        self._last_event[line.stream] = (index, line.number)
        return True

    def take_hints(self, line: Peeled) -> None:
        """Keep versions, arguments, asserts and the call site."""
        if len(self.versions) < _HINTS:
            self.versions += version_hints(line.text, line.number)
        found = allocator_assert(line.text, line.number)
        if found is not None and len(self.asserts) < _HINTS:
            self.asserts.append(found)
        args = engine_args(line.text, line.number)
        if args is not None and len(self.args) < _HINTS // 10:
            self.args.append(args)
        header = line.header
        if header is not None and header.file and header.lineno and len(self._sites) < _SITES:
            site = (header.file, header.lineno)
            if site not in self._sites:
                self._sites[site] = CallSite(*site, line.text[:200], line.number)

    def take_line(self, line: Peeled, stream: StreamId) -> None:
        """Keep the line itself, within bounds: the first and the last of them."""
        if stream not in self.streams and len(self.streams) < _STREAMS:
            self.streams[stream] = None
        header = line.header
        kept = Line(
            line.number, line.text, line.shown, stream,
            header.level if header else None, header.time if header else None,
            header.file if header else None, header.lineno if header else None,
        )  # fmt: skip
        size = len(line.text) + len(line.shown)
        if self._chars + size <= _CHARS // 2 and len(self._lines) < self._limits.lines // 2:
            self._chars += size
            self._lines.append(kept)
            return
        self._late_lines.append(_shorter(kept))

    def freeze(self, last_line: int) -> Run:
        """Give the finished run."""
        events = tuple(
            replace(event, frames=tuple(self._event_frames[i]))
            if i in self._event_frames
            else event
            for i, event in enumerate(self.events)
        )
        return Run(
            number=self.number,
            first_line=self.first_line,
            last_line=last_line,
            engine=self.tracker.engine,
            nodes=self.nodes.freeze(),
            events=events,
            deaths=tuple(self.deaths),
            interrupts=tuple(self.interrupts),
            marks=(*self.marks, *self._late_marks),
            bars=tuple(sorted(self._bars.values(), key=lambda bar: bar.line)),
            versions=tuple(self.versions),
            call_sites=tuple(self._sites.values()),
            asserts=tuple(self.asserts),
            args=tuple(self.args),
            records=self.records.freeze(),
            lines=(*self._lines, *self._late_lines),
            streams=tuple(s for s in self.streams if s != UNNAMED),
        )

    def _has_room(self, items: list[NativeEvent] | list[Death] | list[Interrupt]) -> bool:
        if len(items) < self._limits.events:
            return True
        self.dropped += 1
        return False


def _shorter(line: Line) -> Line:
    return replace(line, text=line.text[:_SHORT], shown=line.shown[:_SHORT])


_SHORT = 600  # characters of a line that is kept from the end of a large log
