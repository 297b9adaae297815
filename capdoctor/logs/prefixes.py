"""Who wrote a line, and the header of its record.

Process prefixes as vLLM 0.8.0 to 0.33.0, Ray, torchrun and SGLang write them, nested ones too;
record headers of vLLM (V1, V0 without the bracket), SGLang, glog (c10), torch and uvicorn.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from capdoctor.logs.values import UNNAMED, Level, StreamId

_PROCESS = re.compile(
    r"\((?P<name>[A-Za-z_][^()\n]{0,60}?)(?: rank=(?P<rank>\d+))?[ :]?"
    r" pid=(?P<pid>\d+)(?:, ip=(?P<ip>[^)]{1,60}))?\)(?: |$)"
)
_RANK = re.compile(r"\[(?:rank|default|worker)(?P<rank>\d+)\]:(?: |$|(?=[\[(A-Z]))")
_RANK_IN_NAME = re.compile(r"(?:TP|rank|Worker-)(\d+)")
_HEADER = re.compile(
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) "
    r"(?:\[(?P<file>[^\]\s:]*)(?::(?P<line>\d+))?\]|(?P<file0>[\w./-]+\.py):(?P<line0>\d+)\])"
    r"(?: |$)"
)
_SGLANG = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)"
    r"(?P<tag>(?: [A-Z][A-Z_]{1,8}\d+)*)\](?: |$)"
)
_GLOG = re.compile(
    r"\[?(?P<level>[IWEF])(?P<time>\d{3,4} \d\d:\d\d:\d\d\.\d+)(?: +\d+)? "
    r"(?P<file>[\w./+-]+\.\w+):(?P<line>\d+)\](?: |$)"
)
_PLAIN = re.compile(
    r"(?:- )?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    r"(?::\s+|\s+-\s+|(?=\s+[\w.]+\.py:\d+\s))(?:(?P<file>[\w.]+\.py):(?P<line>\d+)\s+--?\s+)?"
)
_LEVELS: dict[str, Level] = {
    "DEBUG": "DEBUG", "INFO": "INFO", "WARNING": "WARNING", "ERROR": "ERROR",
    "CRITICAL": "CRITICAL", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL",
}  # fmt: skip
_BAR = re.compile(r"[^\n]{0,400}?\d{1,3}%\|[^|\n]{0,400}\|[^\[\n]{0,80}\[[^\]\n]{0,120}\]\s*(?=\S)")
_REPEATED = re.compile(r" \[repeated (?P<n>\d+)x across cluster\](?: \(Ray deduplicates.*)?$")
_FREE = 240  # characters in which a free VLLM_LOGGING_PREFIX may stand before the header
_NESTED = 6
_ROOM = ("INFO ", "ERROR ", "WARNING ", "DEBUG ", "CRITICAL ")


class Header(NamedTuple):
    """What a record header says; ``style`` tells whose it is."""

    style: str
    level: Level | None
    time: str | None
    file: str | None = None
    lineno: int | None = None


class Attributed(NamedTuple):
    """A line's own text, who wrote it, and its record header if it has one."""

    text: str
    stream: StreamId
    header: Header | None
    prefixed: bool
    outer: StreamId = UNNAMED


def attribute(text: str, container: str | None = None) -> Attributed:
    """Take process prefixes and the record header off an unwrapped line."""
    outer, at = _prefixes(text)
    header, end, late = _header(text, at)
    stream = outer if late is None else _both(outer, late)
    if header is None and "%|" in text:
        bar = _BAR.match(text, at)
        if bar:
            rest = attribute(text[bar.end() :], container)
            if rest.header or rest.prefixed or rest.text.startswith(("Traceback (", "Process ")):
                return rest if rest.prefixed else _of(rest, stream, at)
    if container is not None:
        stream, outer = _within(stream, container), _within(outer, container)
    body = _REPEATED.sub("", text[end:]) if "[repeated " in text else text[end:]
    return Attributed(body, stream, header, at > 0 or late is not None, outer)


def _of(rest: Attributed, stream: StreamId, at: int) -> Attributed:
    return Attributed(rest.text, stream, rest.header, at > 0, stream)


def _both(outer: StreamId, tag: StreamId) -> StreamId:
    """A tag in the header names the process, a prefix in front of it (Ray's) says where it is."""
    pid, ip = tag.pid or outer.pid, tag.ip or outer.ip
    return StreamId(tag.name, pid, tag.rank if tag.rank is not None else outer.rank, ip)


def _within(stream: StreamId, container: str) -> StreamId:
    return StreamId(stream.name, stream.pid, stream.rank, stream.ip or container)


def _prefixes(text: str) -> tuple[StreamId, int]:
    stream, at = UNNAMED, 0
    if text[:1] not in ("(", "["):
        return stream, at
    for _ in range(_NESTED):
        match = _PROCESS.match(text, at)
        if match:
            stream = _process(match)
        else:
            match = _RANK.match(text, at)
            if match is None:
                break
            if stream.pid is None:
                stream = StreamId(rank=int(match["rank"][:9]))
        at = match.end()
    return stream, at


def _process(match: re.Match[str]) -> StreamId:
    name = match["name"].strip()
    rank = int(match["rank"][:9]) if match["rank"] else rank_in_name(name)
    return StreamId(name, int(match["pid"][:12]), rank, match["ip"])


def rank_in_name(name: str) -> int | None:
    """Give the rank that a process has in its name: ``Worker_DP0_TP1``, ``VllmWorker-1``."""
    match = _RANK_IN_NAME.search(name)
    return int(match[1][:9]) if match else None


def _header(text: str, at: int) -> tuple[Header | None, int, StreamId | None]:
    """Header at ``at``, or further on behind free text; its end; the process named with it."""
    match = _HEADER.match(text, at)
    late: StreamId | None = None
    if match is None and any(word in text for word in _ROOM):
        match = _HEADER.search(text, at, at + _FREE)
        if match is not None:
            late = _name_before(text, match.start())
    if match is not None:
        file = match["file"] or match["file0"]
        line = match["line"] or match["line0"]
        level = _LEVELS[match["level"]]
        known = Header("vllm", level, match["time"], file, _int(line))
        return known, match.end(), late
    return _other_header(text, at)


def _other_header(text: str, at: int) -> tuple[Header | None, int, StreamId | None]:
    first = text[at : at + 1]
    if first == "[":
        match = _SGLANG.match(text, at)
        if match:
            return Header("sglang", None, match["time"]), match.end(), _tag(match["tag"])
    if first in "[IWEF" and first:
        match = _GLOG.match(text, at)
        if match:
            level, line = _LEVELS[match["level"]], _int(match["line"])
            return Header("glog", level, match["time"], match["file"], line), match.end(), None
    if first in "-DIWEC" and first:
        match = _PLAIN.match(text, at)
        if match:
            level, line = _LEVELS[match["level"]], _int(match["line"])
            return Header("plain", level, None, match["file"], line), match.end(), None
    return None, at, None


def _name_before(text: str, end: int) -> StreamId | None:
    """`FREE(EngineCore pid=1) INFO ...`: the process prefix directly before a header."""
    start = text.rfind("(", 0, end)
    match = _PROCESS.match(text, start) if start >= 0 else None
    return _process(match) if match and match.end() == end else None


def _tag(tag: str) -> StreamId | None:
    name = tag.strip()
    if not name:
        return None
    return StreamId(name, None, rank_in_name(name))


def _int(digits: str | None) -> int | None:
    return int(digits[:9]) if digits else None
