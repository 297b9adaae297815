"""Tracebacks that Rich drew in a box, as Python would have printed them.

Typer, Ray and training frameworks install it: a frame is ``path:36 in function``, wrapped at the
width of the box, and an arrow marks the line that was running.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from capdoctor.logs.frames import HEAD

_TOP = "\u256d\u2500".encode()
_SIDE = "\u2502".encode()
_TITLE = re.compile(r"\s*\u256d\u2500+ " + re.escape(HEAD) + r" \u2500+\u256e\s*$")
_BOTTOM = re.compile(r"\s*\u2570\u2500+\u256f\s*$")
_INSIDE = re.compile(r"\s*\u2502(?P<text>.*)\u2502\s*$")
_CODE = re.compile(r"\s*(?P<arrow>\u2771)?\s*\d+(?: (?P<code>.*))?$")
_FRAME = re.compile(r"(?P<file>\S.*?):(?P<line>\d{1,9}) ?in ?(?P<function>\S+)$")
_NOTHING = b"    ^"  # a line of a traceback that says nothing
_LONGEST = 1_000  # characters of a path


class _Drawn(NamedTuple):
    line: bytes
    path: str = ""  # the begin of a path that goes on in the next line
    inside: bool = True


def unboxed(lines: list[bytes]) -> list[bytes]:
    """Give the lines with every box undone; as many lines as before."""
    if not any(_TOP in line for line in lines):
        return lines
    plain: list[bytes] = []
    state = _Drawn(b"", inside=False)
    for line in lines:
        if state.inside or _TOP in line:
            state = _read(line, state)
            plain.append(state.line)
        else:
            plain.append(line)
    return plain


def _read(line: bytes, before: _Drawn) -> _Drawn:
    text = line.decode("utf-8", "replace")
    if _TITLE.match(text):
        return _Drawn(f"{HEAD}:".encode())
    inside = _INSIDE.match(text) if before.inside and _SIDE in line else None
    if inside is None:
        ends = before.inside and _BOTTOM.match(text)
        return _Drawn(_NOTHING if ends else line, inside=False)
    return _content(inside["text"].strip(), before.path)


def _content(text: str, begun: str) -> _Drawn:
    code = _CODE.match(text)
    if code is not None:
        # Rich draws the indentation with the same stroke.
        source = (code["code"] or "").replace("\u2502", " ").strip()
        return _Drawn(f"    {source}".encode() if code["arrow"] else _NOTHING)
    path = (begun + text)[:_LONGEST]
    frame = _FRAME.match(path)
    if frame is not None:
        shown = f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}'
        return _Drawn(shown.encode())
    return _Drawn(_NOTHING, path if text else "")
