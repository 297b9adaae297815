"""The line shapes of tracebacks: Python's, C++'s, crash handlers'."""

from __future__ import annotations

import re
from typing import Literal

from capdoctor.logs.paths import package_path
from capdoctor.logs.values import LinkKind, StackFrame

HEAD = "Traceback (most recent call last)"
_FRAME = re.compile(
    r'\s*File "(?P<file>[^"\n]{1,600})", line (?P<line>\d{1,9})'
    r"(?:,? in (?P<function>.{1,400}?)(?:\s{2,}(?P<code>\S.*))?)?\s*$"  # code: a lost line break
)
_CPP_FRAME = (
    r"\s*frame #\d+: (?P<symbol>.{1,2000}?)(?: \+ (?:0x)?[0-9a-f]+)?"
    r"(?: \(0x[0-9a-f]+ in (?P<lib>[^)]{1,400})\)| from (?P<from>\S{1,400}))?\s*$"
)
_SYMBOLIZED = r"#\d+ (?P<symbol>.{1,2000}?) from (?P<from>[^\s:]{1,400}):(?P<line>\d{1,9})\s*$"
_TERMINAL = re.compile(
    r"(?P<type>[A-Za-z_]\w{0,200}(?:\.[\w<>]{1,200}){0,20})(?::(?: (?P<message>.*))?)?\s*$"
)
_BARE = re.compile(
    r"(?P<type>(?:[A-Za-z_]\w{0,100}\.){0,12}"
    r"(?:[A-Z]\w{0,100}(?:Error|Exception|Interrupt|Exit|ExceptionGroup|Failure)|Exception(?=: )))"
    r"(?:: (?P<message>.+))?\s*$"
)
_GROUP_MARGIN = re.compile(r"(?P<indent> *)(?P<rest>\| .*|\|$|\+.*)")
_SEPARATOR = r"\+-(?P<child>\+-)?-+(?P<member> (?:\d+|\.\.\.) -+)?\+?$"
_JOINS = {
    "During handling of the above exception, another exception occurred:": LinkKind.CONTEXT,
    "The above exception was the direct cause of the following exception:": LinkKind.CAUSE,
}
_NATIVE_SUFFIX = (".so", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".hip")


def python_frame(text: str) -> StackFrame | None:
    """Read ``  File "x.py", line 3, in f``."""
    if 'File "' not in text:
        return None
    match = _FRAME.match(text)
    if match is None:
        return None
    file = match["file"]
    code = (match["code"] or "").rstrip()[:300]
    return StackFrame(file, int(match["line"]), match["function"], code, package_path(file))


def cpp_frame(text: str) -> StackFrame | None:
    """Read ``frame #3: symbol + 0x1f (0x7f.. in libtorch.so)`` or ``#4 symbol from x.cpp:12``."""
    match = re.match(_CPP_FRAME, text) if "frame #" in text else None
    if match is not None:
        file = match["lib"] or match["from"] or ""
        return StackFrame(file, None, match["symbol"], "", package_path(file))
    match = re.match(_SYMBOLIZED, text) if text.startswith("#") else None
    if match is None:
        return None
    file = match["from"]
    return StackFrame(file, int(match["line"]), match["symbol"], "", package_path(file))


def terminal(text: str) -> tuple[str, str] | None:
    """Read the last line of a traceback, ``Type: message``; None if it is none."""
    match = _TERMINAL.match(text)
    if match is None:
        return None
    name = match["type"].rsplit(".", 1)[-1]
    if not (name[0].isupper() or name.lower().endswith(("error", "timeout", "exit", "fault"))):
        return None
    if ":" not in text and not looks_like_type(match["type"]):
        return None
    return match["type"], match["message"] or ""


def looks_like_type(name: str) -> bool:
    """Whether a word that stands alone can be the name of an exception."""
    last = name.rsplit(".", 1)[-1]
    hump = sum(c.isupper() for c in last) >= 2 or "." in name  # noqa: PLR2004
    known = last in {"Empty", "Full", "Again", "Exit", "Timeout", "Interrupt"}
    return known or (hump and any(c.islower() for c in last))


def bare_error(text: str) -> tuple[str, str] | None:
    """Read ``torch.AcceleratorError: message`` that stands alone, with no traceback."""
    if not any(word in text for word in ("Error", "Exception", "Interrupt", "Exit", "Failure")):
        return None
    match = _BARE.match(text)
    if match is None or (match["message"] is None and not looks_like_type(match["type"])):
        return None
    return match["type"], match["message"] or ""


def join_of(text: str) -> LinkKind | None:
    """Read the sentence between two chained exceptions."""
    return _JOINS.get(text.strip())


def group_margin(text: str) -> tuple[int, str] | None:
    """Split the margin of an exception group off: its depth in spaces, and what follows it."""
    match = _GROUP_MARGIN.match(text)
    return (len(match["indent"]), match["rest"]) if match else None


def group_separator(rest: str) -> Literal["child", "member", "end"] | None:
    """Read the rule between the members of a group: it opens them, parts them or ends them."""
    match = re.match(_SEPARATOR, rest)
    if match is None:
        return None
    return "child" if match["child"] else "member" if match["member"] else "end"


def is_native(frame: StackFrame) -> bool:
    """Whether a ``File "..."`` line of a crash handler names C source, not Python."""
    return frame.file.endswith(_NATIVE_SUFFIX) or frame.file in {"<unknown>", ""}
