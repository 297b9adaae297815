"""A raw line to the lines that it stands for: wrappers, colours and prefixes taken off."""

from __future__ import annotations

from typing import NamedTuple

from capdoctor.logs.jsonlines import JsonLine, read_json_line
from capdoctor.logs.limits import DEFAULT_LIMITS, Limits
from capdoctor.logs.oneline import unfolded
from capdoctor.logs.prefixes import Attributed, Header, attribute
from capdoctor.logs.text import clean, decode, last_segment
from capdoctor.logs.values import UNNAMED, StreamId
from capdoctor.logs.wrappers import Unwrapper

_SHOWN = 2_000
_DEEPEST = 3  # JSON in JSON in JSON


class Peeled(NamedTuple):
    """One logical line. ``raw`` still has its overwritten segments, for progress bars."""

    number: int
    text: str
    shown: str
    raw: str
    stream: StreamId
    header: Header | None
    prefixed: bool
    outer: StreamId = UNNAMED


class Peeler:
    """Takes lines in file order; it joins what a container runtime cut into parts."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.layers: set[str] = set()
        self._limits = limits
        self._unwrapper = Unwrapper()
        self._parts: list[str] = []
        self._newlines = False
        self._first = 0

    def peel(self, raw: str, number: int) -> list[Peeled]:
        """Give the lines that ``raw`` stands for: mostly one, none for the part of a line."""
        return self._peel(clean(raw.rstrip("\r")), number, 0)

    def look_ahead(self, lines: list[bytes]) -> None:
        """Learn from the first lines of a log how it is wrapped."""
        self._unwrapper.look_ahead(clean(decode(line)) for line in lines)

    def flush(self) -> list[Peeled]:
        """Give what is left of a line whose last part never came."""
        if not self._parts:
            return []
        text, self._parts = "".join(self._parts), []
        lines = [clean(line) for line in text.split("\n")]
        return [self._line(line, line, self._first, None) for line in lines]

    def stream_of(self, raw: str) -> StreamId:
        """Say who wrote a line, without taking part in joining."""
        text = self._unwrapper.unwrap(clean(raw.rstrip("\r"))).text
        return attribute(text).stream

    def _peel(self, text: str, number: int, depth: int) -> list[Peeled]:
        shown = text
        unwrapped = self._unwrapper.unwrap(text)
        self.layers.update(unwrapped.layers)
        entry = read_json_line(unwrapped.text) if depth < _DEEPEST else None
        if entry is not None:
            self.layers.add(entry.layer)
            return self._from_json(entry, number, depth)
        joined, first = self._join(unwrapped.text, number, partial=unwrapped.partial)
        if joined is None:
            return []
        if joined is unwrapped.text:
            return self._lines(joined, shown, first, unwrapped.container)
        lines = [clean(line) for line in joined.split("\n")]
        return [p for line in lines for p in self._lines(line, line, first, unwrapped.container)]

    def _from_json(self, entry: JsonLine, number: int, depth: int) -> list[Peeled]:
        if entry.header is None:
            # Docker keeps the newline of a line that is whole; other shippers drop all of them.
            self._newlines = self._newlines or entry.newline
            partial = entry.partial and self._newlines
            joined, first = self._join(entry.text, number, partial=partial)
            if joined is None:
                return []
            lines = joined.split("\n")
            return [
                p for line in lines for p in self._peel(clean(line.rstrip("\r")), first, depth + 1)
            ]
        return [
            Peeled(number, text, text[:_SHOWN], text, entry.stream, entry.header, prefixed=True)
            for line in entry.text.split("\n")
            for text in unfolded(clean(line.rstrip("\r")))
        ]

    def _join(self, text: str, number: int, *, partial: bool) -> tuple[str | None, int]:
        if partial:
            if not self._parts:
                self._first = number
            if sum(map(len, self._parts)) < self._limits.line:
                self._parts.append(text)
            return None, number
        if not self._parts:
            return text, number
        whole, self._parts = "".join([*self._parts, text]), []
        return whole, self._first

    def _lines(self, text: str, shown: str, number: int, container: str | None) -> list[Peeled]:
        """Give one line, or the lines of a traceback that was put on one."""
        parts = unfolded(text)
        if len(parts) == 1:
            return [self._line(text, shown, number, container)]
        first, *rest = (self._line(part, part, number, container) for part in parts)
        return [first, *(_of_the_same(first, line) for line in rest)]

    def _line(self, text: str, shown: str, number: int, container: str | None) -> Peeled:
        visible = last_segment(text)
        found = attribute(visible, container)
        if visible is not text and not found.prefixed:
            found = _with_prefix_of(text, found, container)
        seen = last_segment(shown)[:_SHOWN]
        body = found.text[: self._limits.message].rstrip()
        return Peeled(
            number, body, seen, text, found.stream, found.header, found.prefixed, found.outer
        )


def _of_the_same(first: Peeled, line: Peeled) -> Peeled:
    """A part of a folded record has the header of the first, unless it brought its own."""
    if line.header is not None or line.prefixed:
        return line
    return line._replace(
        stream=first.stream, header=first.header, prefixed=first.prefixed, outer=first.outer
    )


def _with_prefix_of(text: str, found: Attributed, container: str | None) -> Attributed:
    r"""`(EngineCore pid=1) \rCapturing...`: the prefix stands before the carriage return."""
    head = attribute(text[: text.find("\r")], container) if "\r" in text else found
    if not head.prefixed or head.stream == UNNAMED:
        return found
    return Attributed(found.text, head.stream, found.header, prefixed=True, outer=head.outer)
