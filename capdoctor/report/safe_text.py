"""Text of strangers, made safe for a terminal and for Markdown.

A log may hold escape sequences, title changes, bidirectional controls and NULs. None of them may
reach a terminal: they are shown as what they are.
"""

from __future__ import annotations

import re

# C0 (less tab and newline), DEL, C1, and the controls that reorder or hide text.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Give the text with every control character written out, as ``\x1b``; lines stay lines."""
    text = _UNSAFE.sub(_written_out, text)
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str, limit: int | None = None) -> str:
    """Give the text as one printable line, cut to ``limit`` characters with an ellipsis."""
    flat = printable(" ".join(text.split()))
    if limit is not None and len(flat) > limit:
        return flat[: limit - 1] + "\u2026"
    return flat


def _written_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - one byte
