"""Which stage of its start-up an engine is in, read off its log line by line.

The markers are data (``data/stages.toml``): a text, the stage it leads into, the stage it ends.
The embedded engine writes the format of vLLM 0.33.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from capdoctor.logs.bars import BarState, bar_states
from capdoctor.logs.markers import Marker, find_marker
from capdoctor.logs.peel import Peeler
from capdoctor.logs.values import UNNAMED, CaptureBar, Engine, StageMark, StreamId
from capdoctor.model import STAGE_ORDER, Stage

_ORDER = {stage: index for index, stage in enumerate(STAGE_ORDER)}
_KEPT = 400  # characters of a marker's line
# The sampler is warmed up after the graphs: the only way back.
_BACK = {(Stage.CAPTURE, Stage.WARMUP)}


@dataclass(frozen=True, slots=True)
class Progress:
    """What one line said: a stage mark, the newest state of a capture bar, both or neither."""

    mark: StageMark | None = None
    bar: CaptureBar | None = None
    marker: Marker | None = None


NOTHING = Progress()


class StageTracker:
    """Follow one start-up.

    Feed it raw lines (with prefixes, colours and carriage returns) in the order in which they
    come; it never goes back to an earlier stage because a slower rank reports late.
    ``current`` is the stage that the engine is in, ``passed`` the stages that are over,
    ``engine`` which engine writes, once a line told.
    """

    def __init__(self) -> None:
        self.current: Stage = Stage.IMPORT
        self.passed: frozenset[Stage] = frozenset()
        self.engine: Engine | None = None
        self._seen_any = False
        self._line = 0
        self._peeler: Peeler | None = None

    def feed(self, raw: str) -> Progress:
        """Take one line as it was printed (no newline needed) and say what it told."""
        self._line += 1
        progress = self.look(raw, raw, UNNAMED, self._line)
        if progress is NOTHING:
            return NOTHING
        if self._peeler is None:
            self._peeler = Peeler()
        return _with_stream(progress, self._peeler.stream_of(raw))

    def has_passed(self, stage: Stage) -> bool:
        """Whether ``stage`` is over: it ended, or a later one began."""
        return stage in self.passed

    def look(self, text: str, raw: str, stream: StreamId, number: int) -> Progress:
        """As `feed`, for a line that is peeled already; ``raw`` still has its carriage returns."""
        states = bar_states(raw)
        if states:
            return self.on_bar(states[-1], stream, number)
        marker = find_marker(text)
        return self.on_marker(marker, text, stream, number) if marker else NOTHING

    def on_bar(self, state: BarState, stream: StreamId, number: int) -> Progress:
        """Take the state of a capture bar."""
        certain = self._seen_any
        stage = self._bar_stage()
        before = self.current
        self._enter(stage, None)
        bar = CaptureBar(
            number, stream, state.label, state.mode, state.done, state.total, stage, state.size
        )
        if before is stage and certain:
            return Progress(bar=bar)
        mark = StageMark(
            stage, number, stream, "capture_bar", state.label, None, certain, self.current
        )
        return Progress(mark=mark, bar=bar)

    def _bar_stage(self) -> Stage:
        """Before the KV cache is sized graphs are captured to measure them, after it to serve."""
        measuring = _ORDER[self.current] < _ORDER[Stage.KV_CACHE]
        if measuring and self._seen_any and self.engine != "sglang":
            return Stage.PROFILE_CUDAGRAPH_MEMORY
        return Stage.CAPTURE

    def on_marker(self, marker: Marker, text: str, stream: StreamId, number: int) -> Progress:
        """Take a marker that was found in a line."""
        self.engine = self.engine or marker.engine
        if marker.id == "server_ready" and self.engine == "sglang":
            return NOTHING  # SGLang's web server is up before its warm-up request has passed
        if marker.late and self._seen_any:
            return NOTHING
        stage, ended = self._resolve(marker)
        self._seen_any = True
        self._enter(stage, ended)
        mark = StageMark(
            stage, number, stream, marker.id, text[:_KEPT], ended, reached=self.current
        )
        return Progress(mark=mark, marker=marker)

    def _resolve(self, marker: Marker) -> tuple[Stage, Stage | None]:
        """`Graph capturing finished` is printed after measuring, too (V2 runner, 0.29 and on)."""
        measuring = _ORDER[self.current] < _ORDER[Stage.KV_CACHE] and self._seen_any
        if marker.id == "vllm_graphs_done" and measuring:
            return Stage.KV_CACHE, Stage.PROFILE_CUDAGRAPH_MEMORY
        return marker.stage, marker.ended

    def _enter(self, stage: Stage, ended: Stage | None) -> None:
        forward = _ORDER[stage] > _ORDER[self.current]
        if not forward and (self.current, stage) not in _BACK:
            return
        over = {earlier for earlier in STAGE_ORDER if _ORDER[earlier] < _ORDER[stage]}
        if ended is not None:
            over.add(ended)
        self.current = stage
        self.passed = self.passed | frozenset(over - {stage})


def _with_stream(progress: Progress, stream: StreamId) -> Progress:
    mark = replace(progress.mark, stream=stream) if progress.mark else None
    bar = replace(progress.bar, stream=stream) if progress.bar else None
    return Progress(mark, bar, progress.marker)
