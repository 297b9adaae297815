"""When a start-up was in which stage, read off its lines as they come."""

from __future__ import annotations

from dataclasses import replace

from capdoctor.engines.listener import BarState, RunListener
from capdoctor.logs.stages import StageTracker
from capdoctor.model import Stage, StageSpan


class StageClock:
    """Follow the stages of one start-up; tells the listener of each.

    That an engine shuts down is no stage of its start: a crash makes it do so, too, and what came
    before the shutdown has not passed for that.
    """

    def __init__(self, listener: RunListener) -> None:
        self._tracker = StageTracker()
        self._listener = listener
        self._passed: frozenset[Stage] = frozenset()
        self._spans = [StageSpan(Stage.IMPORT, 0.0, None)]
        self.current = Stage.IMPORT
        listener.stage_began(Stage.IMPORT, 0.0)

    def has_passed(self, stage: Stage) -> bool:
        """Whether the stage is over, or was left out and a later one began."""
        return stage in self._passed

    def line(self, text: str, seconds: float) -> None:
        """Take in a line, or the newest state of one that is not complete."""
        before = self._tracker.current
        progress = self._tracker.feed(text)
        if self._tracker.current is Stage.SHUTDOWN:
            return
        self._passed |= self._tracker.passed
        if progress.mark is not None and progress.mark.ended is not None:
            self._end(progress.mark.ended, seconds)
        if self._tracker.current not in (before, self.current):
            self._begin(self._tracker.current, seconds)
        if progress.bar is not None:
            bar = progress.bar
            state = BarState(bar.label, bar.mode, bar.done, bar.total)
            self._listener.bar_moved(state, seconds)

    def imported(self, seconds: float) -> None:
        """Take in that the engine's modules are imported, which no line may tell."""
        if self.current is Stage.IMPORT:
            self._passed |= {Stage.IMPORT}
            self._begin(Stage.CONFIG, seconds)

    def _begin(self, stage: Stage, seconds: float) -> None:
        self._end(self.current, seconds)
        self.current = stage
        self._spans.append(StageSpan(stage, seconds, None))
        self._listener.stage_began(stage, seconds)

    def _end(self, stage: Stage, seconds: float) -> None:
        last = self._spans[-1]
        if last.name is stage and last.end is None:
            self._spans[-1] = replace(last, end=seconds)
            self._listener.stage_ended(stage, seconds)

    def spans(self, ended_well_at: float | None = None) -> tuple[StageSpan, ...]:
        """Give the stages so far; the running one ends then if the run ended well."""
        last = self._spans[-1]
        if ended_well_at is None or last.end is not None:
            return tuple(self._spans)
        return (*self._spans[:-1], replace(last, end=ended_well_at))
