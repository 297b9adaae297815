"""Exceptions and records while they are still being read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from capdoctor.logs.limits import Limits
from capdoctor.logs.peel import Peeled
from capdoctor.logs.prefixes import Header
from capdoctor.logs.values import (
    UNNAMED,
    ExceptionNode,
    Level,
    Link,
    LinkKind,
    Origin,
    Record,
    StackFrame,
    StreamId,
)

_PROCESS_LINE = r"Process (?P<name>[^\s:]{1,80}):$"
_KEY_FRAMES = 2
_KEY_MESSAGE = 300
Key = tuple[str | None, str, tuple[tuple[str, int | None, str | None], ...]]


@dataclass(slots=True)
class RecordDraft:
    """A record whose last line is not known yet."""

    stream: StreamId
    level: Level | None
    time: str | None
    file: str | None
    lineno: int | None
    style: str
    line: int
    last_line: int
    header: Header
    parts: list[str] = field(default_factory=list)
    size: int = 0
    has_traceback: bool = False
    frozen: Record | None = None

    def add(self, line: Peeled, limits: Limits) -> None:
        """Take one more line of the record."""
        self.last_line = line.number
        if self.size < limits.message:
            self.parts.append(line.text)
            self.size += len(line.text) + 1

    def continues(self, line: Peeled) -> bool:
        """Whether a line with a header repeats this record's header (vLLM does so)."""
        h = line.header
        if self.style in ("sglang", "glog", "plain"):
            return False
        if self.style == "json":
            return h is self.header
        return h is not None and (h.style, h.level, h.time, h.file, h.lineno) == (
            self.style, self.level, self.time, self.file, self.lineno,
        )  # fmt: skip

    def freeze(self) -> Record:
        """Give the record as it is now; always the same object."""
        if self.frozen is None:
            self.frozen = Record(
                self.stream, self.level, self.time, self.file, self.lineno,
                "\n".join(self.parts), self.line, self.last_line,
            )  # fmt: skip
        return self.frozen


def open_record(line: Peeled) -> RecordDraft:
    """Begin a record at a line that has a header."""
    header = line.header
    assert header is not None  # noqa: S101 - the caller has looked
    return RecordDraft(
        line.stream, header.level, header.time, header.file, header.lineno, header.style,
        line.number, line.number, header,
    )  # fmt: skip


@dataclass(slots=True)
class NodeDraft:
    """An exception that is being read."""

    index: int
    origin: Origin
    stream: StreamId
    line: int
    last_line: int
    record: RecordDraft | None
    preface: str = ""
    type: str | None = None
    message: list[str] = field(default_factory=list)
    size: int = 0
    frames: list[StackFrame] = field(default_factory=list)
    dropped: int = 0
    native_frames: list[StackFrame] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    error_line: int | None = None
    truncated_head: bool = False
    truncated_tail: bool = False
    repeats: int = 1

    def add_frame(self, frame: StackFrame, limits: Limits) -> None:
        """Keep the outer and the inner half of an endless recursion."""
        if len(self.frames) >= limits.frames:
            del self.frames[limits.frames // 2]
            self.dropped += 1
        self.frames.append(frame)

    def add_native(self, frame: StackFrame, limits: Limits) -> None:
        """Keep the innermost native frames; they come first."""
        if len(self.native_frames) < limits.frames:
            self.native_frames.append(frame)

    def add_message(self, text: str, limits: Limits) -> None:
        """Take one more line of the message."""
        if self.size < limits.message:
            self.message.append(text)
            self.size += len(text) + 1

    @property
    def key(self) -> Key:
        """What two printings of one exception have in common."""
        inner = tuple((f.path, f.line, f.function) for f in self.frames[-_KEY_FRAMES:])
        return self.type, self.text[:_KEY_MESSAGE], inner

    @property
    def text(self) -> str:
        """The message, without the blank lines after it."""
        return "\n".join(self.message).rstrip()

    @property
    def process_name(self) -> str | None:
        """The X of ``Process X:`` in front of a raw traceback."""
        match = re.match(_PROCESS_LINE, self.preface)
        return match["name"] if match else None

    def link(self, kind: LinkKind, to: int) -> None:
        """Point at another exception."""
        self.links.append(Link(kind, to))

    def freeze(self, index: int, renumber: dict[int, int]) -> ExceptionNode:
        """Give the finished node; links to nodes that were not kept are dropped."""
        links = tuple(
            Link(link.kind, renumber[link.to]) for link in self.links if link.to in renumber
        )
        return ExceptionNode(
            index=index,
            origin=self.origin,
            type=self.type,
            message=self.text,
            frames=tuple(self.frames),
            stream=self.stream,
            line=self.line,
            error_line=self.error_line,
            last_line=self.last_line,
            links=links,
            native_frames=tuple(self.native_frames),
            record=self.record.freeze() if self.record else None,
            process_name=self.process_name,
            repeats=self.repeats,
            truncated_head=self.truncated_head,
            truncated_tail=self.truncated_tail,
            preface=self.preface,
        )


def unnamed(stream: StreamId) -> bool:
    """Whether a raw line says nothing about its process."""
    return (stream.name, stream.pid, stream.rank) == (UNNAMED.name, UNNAMED.pid, UNNAMED.rank)
