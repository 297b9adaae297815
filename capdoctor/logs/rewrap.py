"""Puts lines together again that a terminal or a chat wrapped at a fixed width."""

from __future__ import annotations

import re

_WIDTHS = range(60, 201)
_FEWEST = 3  # wrapped lines that it takes to believe in a width
_SHARE_HARD, _SHARE_WORDS = 0.03, 0.15
_MIXED = 0.3  # breaks before the width, against those at it, from which on words were kept whole
# A line that begins like this is a line of its own, however full the one before it is.
_STARTS = re.compile(
    rb'\(\w[^()]{0,60} pid=\d|\s{0,8}File "|\s*Traceback \(|\[rank\d|\[\d{4}-|\d{4}-\d\d-\d\d[T ]'
    rb"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-|During handling of the|The above exception was"
    rb"|Process \S+:|\s*\||\x1b\[[\d;]+m\(|[A-Z][a-z]{2} [ \d]\d \d\d:|\{\""
    rb"|\S+:\d+:\d+ \[|\S+\.py:\d+: \w*Warning"
)
# At a soft break these begin a line of their own, too.
_STARTS_SOFT = re.compile(
    rb"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|\s*$)|\s|\+ |(?:INFO|ERROR):"
    rb"|Search for `|CUDA kernel errors|For debugging consider|Compile with `|For more detailed"
    rb"|[\w.-]+ +\| "
)

# A line that ends with the header of its record: its text was pushed to the next line.
_HEADER_END = re.compile(rb" \[[\w./-]+:\d+\]\s*$")
_FRAME_END = re.compile(rb", in [\w<>.]+\s*$")
# What stands at the margin inside a record; anything else there is the source line of a frame.
_FLUSH = re.compile(
    rb"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b|Traceback|During|The above|Search for"
    rb"|CUDA |For |Compile |[A-Z]\w+ \w+"
)


def rewrap(lines: list[bytes]) -> tuple[list[tuple[int, bytes]], int | None]:
    """Give (number of the first line, text) of each line and the width it was wrapped at.

    The width is None, and nothing is joined, unless no line is longer than it and enough lines
    leave no room for the first word of the next, which does not begin like a line of its own.
    """
    numbered = list(enumerate(lines, 1))
    if max(map(len, lines), default=0) > 4 * _WIDTHS.stop:  # bytes; a character has at most four
        return numbered, None
    columns = [len(_text(line)) for line in lines]
    width = max(columns, default=0)
    if width not in _WIDTHS:
        return numbered, None
    pairs = range(1, len(lines))
    hard = [i for i in pairs if columns[i - 1] == width and _goes_on(lines[i - 1], lines[i])]
    soft = [i for i in pairs if _no_room(lines[i - 1], columns[i - 1], lines[i], width)]
    early = sum(columns[i - 1] < width for i in soft)
    if len(hard) >= max(_FEWEST, _SHARE_HARD * len(lines)) and early < _MIXED * len(hard):
        return _joined(numbered, dict.fromkeys(hard, b"")), width
    if len(soft) >= max(_FEWEST, _SHARE_WORDS * len(lines)):
        spaces = {i: _space(lines[i - 1], lines[i], width) for i in soft}
        return _joined(numbered, spaces), width
    return numbered, None


def _joined(numbered: list[tuple[int, bytes]], joints: dict[int, bytes]) -> list[tuple[int, bytes]]:
    whole: list[tuple[int, list[bytes]]] = []
    for index, (number, line) in enumerate(numbered):
        if index in joints and whole:
            parts = whole[-1][1]
            parts[-1] = parts[-1].rstrip(b"\r")
            parts += [joints[index], line]
        else:
            whole.append((number, [line]))
    return [(number, b"".join(parts)) for number, parts in whole]


def _goes_on(before: bytes, line: bytes) -> bool:
    if _HEADER_END.search(before) and not line.startswith(b"("):
        return True
    if not line.strip() or _STARTS.match(line):
        return False
    return not (line.startswith(b"    ") and _FRAME_END.search(before))


def _no_room(before: bytes, columns: int, line: bytes, width: int) -> bool:
    """Whether the first word of ``line`` had no room left on the line before."""
    if not columns or not line.strip():
        return False
    if _HEADER_END.search(before):
        return not _STARTS.match(line) or line.startswith((b'File "', b"Traceback", b"During"))
    if _STARTS.match(line) or _STARTS_SOFT.match(line):
        return False
    word = line.split(None, 1)[0]
    return columns + 1 + len(_text(word)) > width


def _space(before: bytes, line: bytes, width: int) -> bytes:
    """What a soft break stood for: spaces, or nothing inside a word too long for one line."""
    if _HEADER_END.search(before):
        return b" " * (3 if line.startswith(b'File "') else 1 if _FLUSH.match(line) else 5)
    last, first = before.rsplit(None, 1)[-1], line.split(None, 1)[0]
    text = _text(last)
    inside = len(_text(before)) == width and len(text) + len(_text(first)) > width
    hyphen = text.endswith("-") and text[-2:-1].isalnum()
    return b"" if (inside and text[-1] not in ",;:.") or hyphen else b" "


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "replace")
