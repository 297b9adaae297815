"""Puts lines together again that a terminal or a chat wrapped at a fixed width."""

from __future__ import annotations

import re

from capdoctor.logs.views import views

_WIDTHS = range(60, 201)
_FEWEST = 3  # wrapped lines that it takes to believe in a width
_SHARE_HARD, _SHARE_WORDS = 0.03, 0.15
_LONGEST = 32 << 10  # columns that a line may have had before it was wrapped
_MIXED = 0.3  # breaks before the width, against those at it, from which on words were kept whole
# A line that begins like this is a line of its own, however full the one before it is.
_STARTS = (
    rb'\(\w[^()]{0,60} pid=\d|\s{0,8}File "|\s*Traceback \(|\[rank\d|\[\d{4}-|\d{4}-\d\d-\d\d[T ]'
    rb"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-|During handling of the|The above exception was"
    rb"|Process \S+:|\s*\||\x1b\[[\d;]+m\(|[A-Z][a-z]{2} [ \d]\d \d\d:|\{\""
    rb"|\S+:\d+:\d+ \[|\S+\.py:\d+: \w*Warning"
)
# At a soft break these begin a line of their own, too.
_STARTS_SOFT = (
    rb"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|\s*$)|\s|\+ |(?:INFO|ERROR):"
    rb"|Search for `|CUDA kernel errors|For debugging consider|Compile with `|For more detailed"
    rb"|[\w.-]+ +\| "
)

# A line that ends with the header of its record: its text was pushed to the next line.
_HEADER_END = rb" \[[\w./-]+:\d+\]\s*$"
_FRAME_END = rb", in [\w<>.]+\s*$"
# What stands at the margin inside a record; anything else there is the source line of a frame.
_FLUSH = (
    rb"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)\b|Traceback|During|The above|Search for"
    rb"|CUDA |For |Compile |[A-Z]\w+ \w+"
)


def rewrap(lines: list[bytes]) -> tuple[list[tuple[int, bytes]], int | None]:
    """Give (number of the first line, text) of each line and the width it was wrapped at.

    The width is None, and nothing is joined, unless no line is longer than it and enough lines
    leave no room for the first word of the next, which does not begin like a line of its own.
    Colours take no room, and a wrapper that every line has was put on after the wrap.
    """
    found: tuple[list[bytes], dict[int, bytes], int | None] = (lines, {}, None)
    for view in views(lines):
        joints, width = _joints(view)
        if len(joints) > len(found[1]):
            found = (view, joints, width)
    view, joints, width = found
    return _joined(lines, view, joints), width


def _joints(lines: list[bytes]) -> tuple[dict[int, bytes], int | None]:
    """What stood between a line and the one before it, for lines that were one; and the width."""
    if max(map(len, lines), default=0) > 4 * _WIDTHS.stop:  # bytes; a character has at most four
        return {}, None
    columns = [len(_text(line)) for line in lines]
    width = max(columns, default=0)
    if width not in _WIDTHS:
        return {}, None
    pairs = range(1, len(lines))
    hard = [i for i in pairs if columns[i - 1] == width and _goes_on(lines[i - 1], lines[i])]
    soft = [i for i in pairs if _no_room(lines[i - 1], columns[i - 1], lines[i], width)]
    early = sum(columns[i - 1] < width for i in soft)
    if len(hard) >= max(_FEWEST, _SHARE_HARD * len(lines)) and early < _MIXED * len(hard):
        return _believed(dict.fromkeys(hard, b""), width)
    if len(soft) >= max(_FEWEST, _SHARE_WORDS * len(lines)):
        return _believed({i: _space(lines[i - 1], lines[i], width) for i in soft}, width)
    return {}, None


def _believed(joints: dict[int, bytes], width: int) -> tuple[dict[int, bytes], int | None]:
    """Lines that are all of one length look wrapped, too: the whole would be one endless line."""
    row = 0
    for index in joints:
        row = row + 1 if index - 1 in joints else 1
        if row * width > _LONGEST:
            return {}, None
    return joints, width


def _joined(
    lines: list[bytes], view: list[bytes], joints: dict[int, bytes]
) -> list[tuple[int, bytes]]:
    """A joined line keeps the wrapper of its first part, if that is one that stands in front."""
    whole: list[tuple[int, list[bytes]]] = []
    for index, line in enumerate(lines):
        if index in joints and whole:
            parts = whole[-1][1]
            if len(parts) == 1 and not parts[0].rstrip(b"\r").endswith(view[index - 1]):
                parts[0] = view[index - 1]
            parts[-1] = parts[-1].rstrip(b"\r")
            parts += [joints[index], view[index]]
        else:
            whole.append((index + 1, [line]))
    return [(number, b"".join(parts)) for number, parts in whole]


def _goes_on(before: bytes, line: bytes) -> bool:
    if re.search(_HEADER_END, before) and not line.startswith(b"("):
        return True
    if not line.strip() or re.match(_STARTS, line):
        return False
    return not (line.startswith(b"    ") and re.search(_FRAME_END, before))


def _no_room(before: bytes, columns: int, line: bytes, width: int) -> bool:
    """Whether the first word of ``line`` had no room left on the line before."""
    if not columns or not line.strip():
        return False
    if re.search(_HEADER_END, before):
        return not re.match(_STARTS, line) or line.startswith((b'File "', b"Traceback", b"During"))
    if re.match(_STARTS, line) or re.match(_STARTS_SOFT, line):
        return False
    word = line.split(None, 1)[0]
    return columns + 1 + len(_text(word)) > width


def _space(before: bytes, line: bytes, width: int) -> bytes:
    """What a soft break stood for: spaces, or nothing inside a word too long for one line."""
    if re.search(_HEADER_END, before):
        return b" " * (3 if line.startswith(b'File "') else 1 if re.match(_FLUSH, line) else 5)
    last, first = before.rsplit(None, 1)[-1], line.split(None, 1)[0]
    text = _text(last)
    inside = len(_text(before)) == width and len(text) + len(_text(first)) > width
    hyphen = text.endswith("-") and text[-2:-1].isalnum()
    return b"" if (inside and text[-1] not in ",;:.") or hyphen else b" "


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", "replace")
