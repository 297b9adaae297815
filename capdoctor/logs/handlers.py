"""What crash handlers and the C++ runtime print when a process dies."""

from __future__ import annotations

import re
from typing import Literal

_FATAL = r"Fatal Python error: (?P<what>.{1,200})"
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE",
}
_TERMINATE = (
    r"terminat(?:e called after throwing an instance of '(?P<type>[^']{1,300})'"
    r"|ing due to uncaught exception of type (?P<type2>[^:]{1,300})(?:: (?P<text>.*))?)"
)
_WHAT = r"\s*what\(\):\s*(?P<text>.*)"
# tvm-ffi prints C frames under it in the form of Python's.
_SEGFAULT = "!!!!!!! Segfault encountered !!!!!!!"


def fatal_signal(text: str) -> tuple[str, str] | None:
    """Read the heading of faulthandler or of tvm-ffi's handler: signal name and text."""
    if _SEGFAULT in text:
        return "SIGSEGV", "Segfault encountered"
    match = re.match(_FATAL, text) if text.startswith("Fatal") else None
    if match is None:
        return None
    what = match["what"].strip()
    return _SIGNALS.get(what, "Fatal Python error"), what


def thread_heading(text: str) -> Literal["current", "other"] | None:
    """Read the line above the frames of one thread in a dump of faulthandler."""
    if text.startswith("Current thread 0x"):
        return "current"
    if text.startswith(("Thread 0x", "Extension modules", "  <no Python frame>")):
        return "other"
    return None


def cpp_exception(text: str) -> tuple[str, str] | None:
    """Read the last words of the C++ runtime: type of the exception, and its text if there."""
    match = re.match(_TERMINATE, text) if text.startswith("terminat") else None
    if match is None:
        return None
    return match["type"] or match["type2"], match["text"] or ""


def what_text(text: str) -> str | None:
    """Read ``  what():  text``."""
    match = re.match(_WHAT, text)
    return match["text"] if match else None
