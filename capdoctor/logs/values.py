"""What a log holds, as frozen values: a run, a whole log, and all that is in them."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.logs.exceptions import ExceptionNode, Link, LinkKind, Origin, StackFrame
from capdoctor.logs.findings import (
    AllocatorAssert,
    CallSite,
    CaptureBar,
    Death,
    EngineArgs,
    Interrupt,
    NativeEvent,
    StageMark,
    VersionHint,
)
from capdoctor.logs.streams import UNNAMED, Engine, Level, Line, Record, Role, StreamId
from capdoctor.model import Stage

__all__ = [
    "UNNAMED",
    "AllocatorAssert",
    "CallSite",
    "CaptureBar",
    "Death",
    "Engine",
    "EngineArgs",
    "ExceptionNode",
    "Interrupt",
    "Level",
    "Line",
    "Link",
    "LinkKind",
    "NativeEvent",
    "Origin",
    "ParsedLog",
    "Record",
    "Role",
    "Run",
    "StackFrame",
    "StageMark",
    "StreamId",
    "VersionHint",
]


@dataclass(frozen=True, slots=True)
class Run:
    """One start of an engine: everything of interest between ``first_line`` and ``last_line``.

    Every tuple is in file order. ``lines`` are the lines that were looked at: all of a small
    log, the surroundings of what matters in a large one. ``records`` are those of level ERROR and
    CRITICAL, and the WARNING ones that hold a traceback.
    """

    number: int
    first_line: int
    last_line: int
    engine: Engine | None
    nodes: tuple[ExceptionNode, ...] = ()
    events: tuple[NativeEvent, ...] = ()
    deaths: tuple[Death, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    marks: tuple[StageMark, ...] = ()
    bars: tuple[CaptureBar, ...] = ()
    versions: tuple[VersionHint, ...] = ()
    call_sites: tuple[CallSite, ...] = ()
    asserts: tuple[AllocatorAssert, ...] = ()
    args: tuple[EngineArgs, ...] = ()
    records: tuple[Record, ...] = ()
    lines: tuple[Line, ...] = ()
    streams: tuple[StreamId, ...] = ()

    @property
    def ready(self) -> StageMark | None:
        """The first mark that says that the engine serves, if start-up got that far."""
        return next((mark for mark in self.marks if mark.stage is Stage.SERVING), None)

    def stage_at(self, line: int, stream: StreamId | None = None) -> Stage | None:
        """Stage that was running just before ``line``; None if no mark came before it.

        With ``stream``: weights are loaded by every rank at its own pace, so a rank that began to
        load them and did not say that it is done is still there.
        """
        before = [mark for mark in self.marks if mark.line < line]
        own = [mark for mark in before if stream is not None and mark.stream.same_process(stream)]
        if own and own[-1].stage is Stage.WEIGHTS and stream != UNNAMED:
            return Stage.WEIGHTS
        return before[-1].reached if before else None

    def bar_before(self, line: int) -> CaptureBar | None:
        """The last state of a capture bar printed at or before ``line``."""
        return next((bar for bar in reversed(self.bars) if bar.line <= line), None)


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """A whole log. ``member`` is the file inside an archive or folder that it was, if it was one.

    ``limits_hit`` names, in words, what was counted instead of kept. ``wrappers`` are the log
    formats that were peeled off (``cri``, ``journald``...). ``binary`` is True when the text is
    mostly not text. ``looked_at`` counts the lines that were read one by one.
    """

    source: str
    member: str | None
    runs: tuple[Run, ...]
    total_lines: int
    total_bytes: int
    looked_at: int
    wrappers: tuple[str, ...] = ()
    compression: str | None = None
    wrapped_at: int | None = None
    binary: bool = False
    limits_hit: tuple[str, ...] = ()
