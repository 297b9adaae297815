"""What lines look like without what was put around them after they had been wrapped."""

from __future__ import annotations

from capdoctor.logs.jsonlines import read_json_line
from capdoctor.logs.text import clean, decode
from capdoctor.logs.wrappers import Unwrapper

_SAMPLE = 40  # lines
_NEARLY_ALL = 0.9


def views(lines: list[bytes]) -> list[list[bytes]]:
    """Give the lines, without the wrapper that all have if one has it; with and without colours."""
    bare = _unwrapped(lines)
    lines = lines if bare is None else bare
    if any(b"\x1b" in line for line in lines):
        return [[_colourless(line) for line in lines], lines]
    return [lines]


def _colourless(line: bytes) -> bytes:
    return clean(decode(line)).encode() if b"\x1b" in line else line


def _unwrapped(lines: list[bytes]) -> list[bytes] | None:
    """None unless nearly every line has a wrapper and none is only a part of a line."""
    sample = [line for line in lines[: 4 * _SAMPLE] if line.strip()][:_SAMPLE]
    if not _bare(sample):
        return None
    return _bare(lines)


def _bare(lines: list[bytes]) -> list[bytes] | None:
    unwrapper = Unwrapper()
    unwrapper.look_ahead(clean(decode(line)) for line in lines)
    bare: list[bytes] = []
    wrapped = filled = 0
    for line in lines:
        text = decode(line)
        text = text.rstrip("\r") if text.startswith("{") else clean(text).rstrip("\r")
        inner = _inner(text, unwrapper)
        if inner is None:
            return None
        filled += bool(text.strip())
        wrapped += inner != text
        bare.append(inner.encode("utf-8", "replace"))
    return bare if filled and wrapped >= _NEARLY_ALL * filled else None


def _inner(text: str, unwrapper: Unwrapper) -> str | None:
    found = unwrapper.unwrap(text)
    entry = read_json_line(found.text)
    if found.partial or (entry is not None and (entry.partial or entry.header is not None)):
        return None
    return entry.text.rstrip("\r") if entry is not None else found.text
