"""Lines in, runs out: the careful reading, one line at a time."""

from __future__ import annotations

from capdoctor.logs.bars import bar_states
from capdoctor.logs.drafts import NodeDraft
from capdoctor.logs.limits import Limits
from capdoctor.logs.markers import Marker, find_marker
from capdoctor.logs.peel import Peeled, Peeler
from capdoctor.logs.runs import RunCollector
from capdoctor.logs.signs import find_signs
from capdoctor.logs.stages import NOTHING, Progress
from capdoctor.logs.tracebacks import TracebackReader
from capdoctor.logs.values import UNNAMED, Interrupt, Run, StreamId

_READERS = 4_096  # streams followed at once; a hostile log can name millions


class Scanner:
    """Feed it lines in file order, then ask for the runs."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._peeler = Peeler(limits)
        self._readers: dict[StreamId, TracebackReader] = {}
        self._runs: list[Run] = []
        self._run = RunCollector(1, 1, limits)
        self._last = 0
        self._fresh = False
        self.looked_at = 0
        self.dropped = 0
        self.merged_runs = 0

    @property
    def run_number(self) -> int:
        """Which run is being read."""
        return self._run.number

    @property
    def layers(self) -> tuple[str, ...]:
        """The wrappers that were peeled off."""
        return tuple(sorted(self._peeler.layers))

    def look_ahead(self, lines: list[bytes]) -> None:
        """Learn from the first lines of a log how it is wrapped."""
        self._peeler.look_ahead(lines)

    def line(self, raw: str, number: int) -> bool:
        """Read one line; say whether it meant anything."""
        self.looked_at += 1
        meant = False
        for peeled in self._peeler.peel(raw, number):
            meant = self._take(peeled) or meant
        return meant

    def gap(self) -> None:
        """Lines were skipped after the last one."""
        if not self._fresh:
            return
        self._fresh = False
        for reader in self._readers.values():
            reader.gap()

    def finish(self, total_lines: int) -> tuple[Run, ...]:
        """End the log and give its runs; none for a log without lines."""
        for peeled in self._peeler.flush():
            self._take(peeled)
        self._close_run(max(total_lines, self._last), at_end=True)
        return tuple(self._runs) if self.looked_at else ()

    def _take(self, line: Peeled) -> bool:
        self._last = line.number
        progress = self._progress(line)
        run = self._run
        place = run.records.place(line)
        reader = self._reader(place.stream)
        if place.boundary or not run.take_native_frame(line):
            meant = reader.feed(line, place.record, boundary=place.boundary)
        else:
            meant = True
        self._fresh = self._fresh or meant
        if not (meant and reader.open):
            signs = find_signs(line.text, line.number, place.stream)
            run.take_signs(signs, place.stream)
            run.take_hints(line)
            meant = meant or bool(signs)
        run.take_line(line, place.stream)
        return meant or progress is not NOTHING

    def _progress(self, line: Peeled) -> Progress:
        states = bar_states(line.raw)
        if states:
            progress = self._run.tracker.on_bar(states[-1], line.stream, line.number)
        else:
            marker = find_marker(line.text)
            if marker is None:
                return NOTHING
            if marker.start:
                self._start_of_run(marker, line)
            tracker = self._run.tracker
            progress = tracker.on_marker(marker, line.text, line.stream, line.number)
        self._run.take_progress(progress, line.stream)
        return progress

    def _start_of_run(self, marker: Marker, line: Peeled) -> None:
        for reader in self._readers.values():
            reader.gap()  # whatever was being told is told
        if self._run.begins_anew(marker, line.stream):
            self._close_run(self._run.records.begin_of(line) - 1)

    def _reader(self, stream: StreamId) -> TracebackReader:
        reader = self._readers.get(stream)
        if reader is None:
            if len(self._readers) >= _READERS:
                stream = UNNAMED
                if UNNAMED in self._readers:
                    return self._readers[UNNAMED]
            nodes = self._run.nodes
            reader = TracebackReader(stream, nodes.begin, self._finish_node, self._limits)
            self._readers[stream] = reader
        return reader

    def _finish_node(self, node: NodeDraft) -> None:
        run = self._run
        run.nodes.finish(node)
        if (node.type or "").endswith("KeyboardInterrupt"):
            at = node.error_line or node.line
            interrupt = Interrupt("keyboard_interrupt", at, node.stream, node.type or "", "SIGINT")
            run.take_signs([interrupt], node.stream)

    def _close_run(self, last_line: int, *, at_end: bool = False) -> None:
        if not at_end and len(self._runs) >= self._limits.runs - 1:
            self.merged_runs += 1
            return
        for reader in self._readers.values():
            reader.close(at_end=at_end)
        self._readers.clear()
        run = self._run
        self._runs.append(run.freeze(last_line))
        self.dropped += run.dropped + run.nodes.dropped + run.records.dropped
        self._run = RunCollector(run.number + 1, last_line + 1, self._limits)
