"""Tracebacks of one stream: line in, exceptions out.

A machine with three states: outside, among the frames, in the message. Chains, notes that repeat
the traceback, tracebacks quoted in messages, exception groups, C++ frames and bare errors.
"""

from __future__ import annotations

from enum import Enum, auto

from capdoctor.logs.chain import Begin, Chain, Finish
from capdoctor.logs.drafts import NodeDraft, RecordDraft
from capdoctor.logs.endings import ends_raw_message, goes_on_after_blank
from capdoctor.logs.frames import (
    HEAD,
    bare_error,
    cpp_frame,
    group_margin,
    group_separator,
    is_native,
    join_of,
    python_frame,
    terminal,
)
from capdoctor.logs.handlers import cpp_exception, fatal_signal, thread_heading, what_text
from capdoctor.logs.limits import Limits
from capdoctor.logs.peel import Peeled
from capdoctor.logs.values import Origin, StreamId

_NOISE = 20  # lines of something else among the frames before a traceback counts as broken off
_RAW_MESSAGE = 80  # lines
_ATTACH = 40  # lines between an error and the C++ frames that belong to it


class _State(Enum):
    OUTSIDE = auto()
    FRAMES = auto()
    MESSAGE = auto()
    HANDLER = auto()


class TracebackReader:
    """Reads the tracebacks of one stream and hands each finished exception to ``finish``."""

    def __init__(self, stream: StreamId, begin: Begin, finish: Finish, limits: Limits) -> None:
        self._chain = Chain(stream, begin, finish)
        self._limits = limits
        self._state = _State.OUTSIDE
        self._margin = self._blank = self._other_thread = False
        self._noise = self._lines = 0

    @property
    def open(self) -> bool:
        """Whether a traceback has begun whose end has not come."""
        return self._state in (_State.FRAMES, _State.HANDLER)

    def feed(self, line: Peeled, record: RecordDraft | None, *, boundary: bool) -> bool:
        """Take one line; say whether it had to do with an exception.

        ``record`` is the record the line belongs to (None: raw text); ``boundary`` is True at
        its first line.
        """
        if boundary:
            self.close()
        text = line.text
        if self._margin or ("+ Exception Group " + HEAD) in text:
            return self._in_group(text, line, record)
        return self._dispatch(text, line, record)

    def close(self, *, at_end: bool = False) -> None:
        """End what is open: the record is over, or the log is."""
        node = self._chain.node
        if node is not None:
            broken = self._state is _State.FRAMES
            node.truncated_tail = broken or (at_end and node.error_line is None)
            self._chain.done()
        self._state, self._margin = _State.OUTSIDE, False
        self._chain.reset()

    def gap(self) -> None:
        """Lines were skipped: a message cannot go on behind them."""
        if self._state is _State.MESSAGE:
            self.close()

    def _dispatch(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        if self._state is _State.FRAMES:
            return self._among_frames(text, line, record)
        if self._state is _State.MESSAGE:
            return self._in_message(text, line, record)
        if self._state is _State.HANDLER:
            return self._in_handler(text, line, record)
        return self._outside(text, line, record)

    def _outside(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        if not text.strip():
            return False
        if HEAD in text:
            self._start(Origin.TRACEBACK, line, record)
            return True
        join = join_of(text)
        if join is not None:
            self._chain.join = join
            return self._chain.last is not None
        if self._native(text, line, record) or self._orphan(text, line, record):
            return True
        self._chain.before = text[:200]
        if self._chain.last is not None and line.number - self._chain.last.last_line > _ATTACH:
            self._chain.last = None
        return False

    def _orphan(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        """A frame without a head (the log begins inside a traceback), or an error on its own."""
        frame = python_frame(text)
        if frame is not None and not is_native(frame):
            node = self._start(Origin.TRACEBACK, line, record)
            node.truncated_head = True
            node.add_frame(frame, self._limits)
            return True
        quiet = record is not None and record.level in ("DEBUG", "INFO", "WARNING")
        error = None if quiet else bare_error(text)
        if error is None:
            return False
        node = self._start(Origin.BARE, line, record)
        self._end_frames(node, error, line)
        return True

    def _native(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        frame = cpp_frame(text)
        if frame is not None:
            if self._chain.last is None or line.number - self._chain.last.last_line > _ATTACH:
                return False
            self._chain.last.add_native(frame, self._limits)
            self._chain.last.last_line = line.number
            return True
        return self._cpp_exception(text, line, record) or self._handler(text, line, record)

    def _cpp_exception(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        error = cpp_exception(text)
        if error is None:
            return False
        self._end_frames(self._start(Origin.CPP, line, record), error, line)
        return True

    def _handler(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        fatal = fatal_signal(text)
        if fatal is None:
            return False
        node = self._start(Origin.HANDLER, line, record)
        node.type, node.error_line = fatal[0], line.number
        node.add_message(fatal[1], self._limits)
        self._state, self._noise, self._other_thread = _State.HANDLER, 0, False
        return True

    def _in_handler(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        node = self._chain.node
        assert node is not None  # noqa: S101 - the state says so
        frame = python_frame(text)
        if frame is not None:
            if node.preface == "python" and not self._other_thread:
                node.frames.insert(0, frame)  # most recent call first
                del node.frames[: -self._limits.frames]
            elif node.preface != "python":
                node.add_native(frame, self._limits)
            node.last_line = line.number
            return True
        heading = thread_heading(text)
        if heading is not None:
            node.preface, self._other_thread = "python", heading == "other"
            return True
        self._noise += 1
        if not text.strip() and self._noise < _NOISE:
            return True
        self.close()
        return self._dispatch(text, line, record)

    def _among_frames(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        node = self._chain.node
        assert node is not None  # noqa: S101 - the state says so
        frame = python_frame(text)
        if frame is not None:
            node.add_frame(frame, self._limits)
        elif HEAD in text:
            node.truncated_tail = True
            self._chain.done()
            self._start(Origin.TRACEBACK, line, record)
        elif text[:1] in (" ", "\t"):
            self._code(node, text)
        else:
            return self._after_frames(node, text, line, record)
        node.last_line = line.number
        return True

    def _code(self, node: NodeDraft, text: str) -> None:
        """The source line under a frame; the line of carets under it adds nothing."""
        if not node.frames or node.frames[-1].code or not text.strip(" ^~\t"):
            return
        last = node.frames[-1]
        node.frames[-1] = type(last)(
            last.file, last.line, last.function, text.strip()[:300], last.path
        )

    def _after_frames(
        self, node: NodeDraft, text: str, line: Peeled, record: RecordDraft | None
    ) -> bool:
        error = terminal(text)
        if error is not None:
            self._end_frames(node, error, line)
            return True
        self._noise += 1
        if self._noise > _NOISE:
            self.close()
            return self._outside(text, line, record)
        return True

    def _in_message(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        node = self._chain.node
        assert node is not None  # noqa: S101 - the state says so
        join = join_of(text)
        if join is not None:
            self._chain.done()
            self._state, self._chain.join = _State.OUTSIDE, join
            return True
        if HEAD in text:
            self._quoted(node, line, record)
            return True
        frame = cpp_frame(text)
        if frame is not None:
            node.add_native(frame, self._limits)
            node.last_line = line.number
            return True
        if record is None and self._raw_message_over(node, text):
            self._chain.done()
            self._state = _State.OUTSIDE
            return self._outside(text, line, record)
        self._take_message(node, text, line)
        return True

    def _take_message(self, node: NodeDraft, text: str, line: Peeled) -> None:
        if not text.strip():
            self._blank = True
        elif node.origin is Origin.CPP and (what := what_text(text)) is not None:
            node.add_message(what, self._limits)
            node.last_line = line.number
        else:
            if self._blank:
                node.add_message("", self._limits)
            self._blank = False
            node.add_message(text, self._limits)
            node.last_line = line.number
        self._lines += 1

    def _raw_message_over(self, node: NodeDraft, text: str) -> bool:
        if not text.strip():
            return False
        if self._blank and not goes_on_after_blank(text):
            return True
        if node.origin is Origin.BARE and bare_error(text) is not None:
            return True
        return self._lines > _RAW_MESSAGE or ends_raw_message(text)

    def _start(self, origin: Origin, line: Peeled, record: RecordDraft | None) -> NodeDraft:
        self._state, self._noise = _State.FRAMES, 0
        return self._chain.start(origin, line, record)

    def _quoted(self, node: NodeDraft, line: Peeled, record: RecordDraft | None) -> None:
        inside = record is not None or (node.text.endswith(":") and not self._blank)
        self._chain.quote(node, line, record, inside)
        self._state, self._noise = _State.FRAMES, 0

    def _end_frames(self, node: NodeDraft, error: tuple[str, str], line: Peeled) -> None:
        node.type, node.error_line, node.last_line = error[0], line.number, line.number
        if error[1]:
            node.add_message(error[1], self._limits)
        self._state, self._blank, self._lines = _State.MESSAGE, False, 0

    def _in_group(self, text: str, line: Peeled, record: RecordDraft | None) -> bool:
        margin = group_margin(text)
        if margin is None:
            if not text.strip():
                return False
            self.close()
            return self._dispatch(text, line, record)
        self._margin = True
        rest = margin[1]
        if rest.startswith("+ Exception Group"):
            self._chain.done()
            self._start(Origin.GROUP, line, record)
            return True
        if rest.startswith("+"):
            self._chain.rule(group_separator(rest))
            self._state = _State.OUTSIDE
            return True
        body = rest[2:] if rest[1:2] == " " else rest[1:]
        if self._state is _State.OUTSIDE and (error := terminal(body)):
            self._end_frames(self._start(Origin.BARE, line, record), error, line)
            return True
        return self._dispatch(body, line, record)
