"""Bytes of a line to clean text: UTF-8 with replacement, no colours, no control characters."""

from __future__ import annotations

import re

# CSI and OSC sequences, two-byte escapes, and what pastes and syslog make of a lost ESC byte.
_ANSI = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b\r\n]{0,4096}(?:\x07|\x1b\\)?"
    r"|\x1b[PX^_][^\x1b\r\n]{0,4096}(?:\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
    r"|(?:#033|\^\[|\\x1b|\\u001b|\\033|\\e|\u241b)\[[0-9;]{0,12}m"
)
_ORPHAN = re.compile(r"(?:^|(?<=\)))(?:\[\d{1,2}(?:;\d{1,2}){0,3}m)+")
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u200b-\u200f\u2060\ufeff\u2066-\u2069]"
)
_ODD = re.compile(_CONTROL.pattern + "|\u00a0")
_LOST_ESCAPE = r"(?:#033|\^\[|\\x1b|\\u001b|\\033|\\e|\u241b)\["


def decode(raw: bytes) -> str:
    """Decode one line; a byte that is no UTF-8 becomes U+FFFD, a byte-order mark goes."""
    return raw.decode("utf-8", "replace").removeprefix("\ufeff")


def clean(text: str) -> str:
    r"""Take out colours, escape sequences and control characters; ``\r`` and tab stay."""
    if "\x1b" in text or ("m" in text and re.search(_LOST_ESCAPE, text)):
        text = re.sub(_ANSI, "", text)
    if "m" in text and ("[0m" in text or _ORPHAN.match(text)):
        text = _ORPHAN.sub("", text)
    if _ODD.search(text):
        text = _CONTROL.sub("", text.replace("\u00a0", " "))
    return text


def last_segment(text: str) -> str:
    r"""Give what a terminal would show of a line: the text after the last bare ``\r``."""
    text = text.rstrip("\r")
    return text[text.rfind("\r") + 1 :] if "\r" in text else text
