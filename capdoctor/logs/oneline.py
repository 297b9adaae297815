r"""A traceback that a collector put on one line: its line ends spelled out, replaced or dropped.

Syslog writes ``#012``, a logfmt or JSON field ``\n``, others `` | `` or only a space. What a
message quotes inside quotation marks stays what it is.
"""

from __future__ import annotations

import re

from capdoctor.logs.frames import HEAD

# What stands for a line end, told by what is between the heading and the first frame.
_MARK = re.compile(
    r":[ \t]*(?P<mark>(?:\\r)?\\n|#015#012|#012|\\u000a|\||\u23ce|\u21b5|<br ?/?>)"
    r"(?=[^\n]{0,200}?File \\?[\"'])"
)
_NO_MARK = re.compile(r":\s+(?=File \\?\")")
_QUOTE = frozenset("'\"`")
_FIELD = re.compile(r"[\w.-]{1,40}=\"(?:[^\"\\]|\\.){0,200}$")  # logfmt: msg="...
_FRAMES = 2  # that a line must hold before it is taken for a folded traceback
_QUOTED_FRAME = "\\n  File "  # inside a literal, which stays one
_REACH = 300  # characters before the heading in which a field may begin
_ESCAPES = {"t": "\t", '"': '"', "'": "'", "\\": "\\"}
_ESCAPED = re.compile(r"\\([t\"'\\])")
_FRAME = re.compile(
    r"File \"(?P<file>[^\"]{1,600})\", line (?P<line>\d{1,9}), in (?P<in>\S{1,200})"
)
_ERROR = re.compile(
    r"\s(?=(?:[A-Za-z_]\w{0,100}\.){0,12}[A-Z]\w{0,100}(?:Error|Exception|Interrupt|Exit)"
    r"(?:: |\s*$))"
)
_PARTS = re.compile(
    r"\s*(" + re.escape(HEAD) + r":|During handling of the above exception, another exception "
    r"occurred:|The above exception was the direct cause of the following exception:)\s*"
)


def unfolded(text: str) -> list[str]:
    """Give the lines that one line stands for: the line itself unless a traceback was folded."""
    at = text.find(HEAD)
    if at < 0:
        return _headless(text)
    behind = at + len(HEAD)
    field = _FIELD.search(text[max(0, at - _REACH) : at])
    if field is None and text[at - 1 : at] in _QUOTE and at:
        return [text]
    mark = _MARK.match(text, behind)
    if mark is not None:
        return _split(text, mark["mark"], quoted=field is not None)
    if _NO_MARK.match(text, behind):
        return _flat(text)
    return [text]


def _headless(text: str) -> list[str]:
    """A traceback without its heading, as web pages show one: two frames stand in one line."""
    if text.count('File "') < _FRAMES or _QUOTED_FRAME in text:
        return [text]
    return _frames(text) if len(_FRAME.findall(text)) >= _FRAMES else [text]


def _split(text: str, mark: str, *, quoted: bool) -> list[str]:
    if quoted:
        text = re.sub(r"(?<!\\)\"[^\"]*$", "", text)
    between = r" ?\| ?" if mark == "|" else re.escape(mark)
    parts = re.split(between, text)
    if "\\" in mark:
        parts = [_ESCAPED.sub(lambda found: _ESCAPES[found[1]], part) for part in parts]
    return parts


def _flat(text: str) -> list[str]:
    """Split where nothing is left of the line ends but spaces."""
    lines: list[str] = []
    for piece in _PARTS.split(text):
        if piece.strip():
            lines += _frames(piece) if _FRAME.search(piece) else [piece]
    return lines


def _frames(piece: str) -> list[str]:
    lines: list[str] = []
    found = [*_FRAME.finditer(piece)]
    ends = [frame.start() for frame in found[1:]]
    if before := piece[: found[0].start()].strip():
        lines.append(before)
    for frame, end in zip(found, [*ends, len(piece)], strict=True):
        lines.append(f"  {frame.group()}")
        code, error = piece[frame.end() : end], ""
        if end == len(piece) and (split := _ERROR.search(code)):
            code, error = code[: split.start()], code[split.end() :]
        lines += [f"    {code.strip()}"] if code.strip() else []
        lines += [error.strip()] if error else []
    return lines
