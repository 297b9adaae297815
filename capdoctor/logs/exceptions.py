"""Exceptions as a log shows them, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from capdoctor.logs.streams import Record, StreamId


class Origin(StrEnum):
    """How an exception came into the log."""

    TRACEBACK = "traceback"  # a Python traceback
    GROUP = "group"  # the head of an exception group
    SUBPROCESS = "subprocess"  # a traceback quoted inside another error's message
    BARE = "bare"  # `Type: message` with no traceback around it
    CPP = "cpp"  # an uncaught C++ exception: terminate called, what():
    HANDLER = "handler"  # printed by a crash handler: faulthandler, tvm-ffi's Segfault


class LinkKind(StrEnum):
    """What joins two exceptions of one printing."""

    CONTEXT = "context"  # this one was raised while `to` was being handled
    CAUSE = "cause"  # this one was raised from `to`
    COPY = "copy"  # this is the same exception, printed again
    EMBEDDED = "embedded"  # this one is quoted in the message of `to`
    MEMBER = "member"  # this one is a member of the exception group `to`


@dataclass(frozen=True, slots=True)
class Link:
    """An edge from the node that holds it to the node with the index ``to``."""

    kind: LinkKind
    to: int


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame. ``file`` is as logged, ``path`` from the package on (``vllm/v1/...``)."""

    file: str
    line: int | None
    function: str | None
    code: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class ExceptionNode:
    """One exception, or one death that a handler printed with its stack.

    ``type`` is None where the text breaks off before it. ``frames`` are outermost
    first, ``native_frames`` innermost first as the log has them. ``line`` is where it begins,
    ``error_line`` the line with type and message (None if it broke off). ``record`` is the log
    record that it was printed in (its level tells a warning from an error). ``process_name`` is
    the X of ``Process X:``. ``preface`` is the line before a raw traceback
    (``Exception ignored in: ...``). ``repeats`` counts the printings that this node stands for:
    one, and those that were not kept.
    """

    index: int
    origin: Origin
    type: str | None
    message: str
    frames: tuple[StackFrame, ...]
    stream: StreamId
    line: int
    error_line: int | None
    last_line: int
    links: tuple[Link, ...] = ()
    native_frames: tuple[StackFrame, ...] = ()
    record: Record | None = None
    process_name: str | None = None
    repeats: int = 1
    truncated_head: bool = False
    truncated_tail: bool = False
    preface: str = ""

    def linked(self, kind: LinkKind) -> int | None:
        """Index of the node that this one points at by ``kind``, if any."""
        return next((link.to for link in self.links if link.kind == kind), None)

    @property
    def copy_of(self) -> int | None:
        """Index of the first printing of the same exception, if this is a later one."""
        return self.linked(LinkKind.COPY)
