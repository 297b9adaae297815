"""Undoes what web pages, chats and string literals do to the text of a log."""

from __future__ import annotations

import json
import re

from capdoctor.logs.jsonlines import read_json_line

_FEW = 3  # lines of a log that is one literal
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_HTML = (b"File &quot;", b"File &#34;", b"&lt;module&gt;", b"File &amp;quot;")
_SMART = "File \u201c".encode()


def restored(lines: list[bytes]) -> list[bytes]:
    """Give the lines with quotes and brackets as they were printed; as many lines as before."""
    if any(mark in line for line in lines for mark in _HTML):
        lines = [_unescaped(line) if b"&" in line else line for line in lines]
    return [_straight(line) if _SMART in line else line for line in lines]


def expanded(lines: list[bytes]) -> list[tuple[int, bytes]]:
    r"""Number the lines; a string literal with a traceback and ``\n`` in it is many of one number.

    Only a log of a few lines is one: elsewhere a literal is what a message quotes.
    """
    if len(lines) > _FEW:
        return list(enumerate(lines, 1))
    return [(number, part) for number, line in enumerate(lines, 1) for part in _parts(line)]


def _parts(line: bytes) -> list[bytes]:
    literal = rb"\n" in line or line.lstrip().startswith(b'["')
    if not literal or b"Traceback (most recent" not in line:
        return [line]
    text = line.decode("utf-8", "replace").strip()
    if read_json_line(text[max(0, text.find("{")) :]) is not None:
        return [line]  # an object is read as one, whatever stands before it
    return [part.encode("utf-8", "replace") for part in _literal(text).split("\n")]


def _literal(text: str) -> str:
    if text[:1] in ('"', "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return "\n".join(str(item).rstrip("\n") for item in value)
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        text = text[1:-1]
    return re.sub(r"\\([nrt\"'\\])", lambda found: _ESCAPES[found[1]], text)


def _unescaped(line: bytes) -> bytes:
    from html import unescape  # its table of entities is needed for few logs

    text = unescape(line.decode("utf-8", "replace"))
    return text.replace("\n", " ").encode("utf-8", "replace")


def _straight(line: bytes) -> bytes:
    text = line.decode("utf-8", "replace")
    return text.replace("\u201c", '"').replace("\u201d", '"').encode("utf-8", "replace")
