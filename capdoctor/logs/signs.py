"""One-line signs (``data/signs.toml``): native failures, deaths of processes, interrupts."""

from __future__ import annotations

import re
import signal
from functools import cache
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, MatchKind

from capdoctor.logs.tables import table
from capdoctor.logs.values import Death, Interrupt, NativeEvent, StreamId

_WORDS = {
    "Killed": "SIGKILL",
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Illegal instruction": "SIGILL",
    "Floating point exception": "SIGFPE",
    "Trace/breakpoint trap": "SIGTRAP",
}
_TABLE = r"'([^']{1,80})': (-?\d{1,9})"
_SHELL_BASE = 128  # a shell and a container runtime report a signal as 128 + its number
_TEXT = 2_000
_SEARCHED = 4_000  # characters of a line
_HEX = 16

Sign = NativeEvent | Death | Interrupt


class _Pattern(NamedTuple):
    id: str
    what: str
    regex: re.Pattern[str]


def find_signs(text: str, number: int, stream: StreamId) -> list[Sign]:
    """Give every sign in a line without its prefix."""
    text = text[:_SEARCHED]
    automaton, owners = _automaton()
    hits = automaton.find_matches_as_indexes(text)
    if not hits:
        return []
    found: list[Sign] = []
    for index in dict.fromkeys(owner for hit in hits for owner in owners[hit[0]]):
        pattern = _compiled(index)
        match = pattern.regex.search(text)
        if match is not None:
            found += _signs(pattern, match, text[:_TEXT], number, stream)
    return found


def needles() -> tuple[str, ...]:
    """Give the substrings one of which every sign has."""
    return tuple(needle for entry in table("sign") for needle in entry["needles"])


@cache
def _automaton() -> tuple[AhoCorasick, tuple[tuple[int, ...], ...]]:
    owners: dict[str, tuple[int, ...]] = {}
    for index, entry in enumerate(table("sign")):
        for needle in entry["needles"]:
            owners[needle] = (*owners.get(needle, ()), index)
    automaton = AhoCorasick(list(owners), matchkind=MatchKind.LeftmostFirst)
    return automaton, tuple(owners.values())


@cache
def _compiled(index: int) -> _Pattern:
    entry = table("sign")[index]
    return _Pattern(str(entry["id"]), str(entry["what"]), re.compile(str(entry["pattern"])))


def _signs(
    pattern: _Pattern, match: re.Match[str], text: str, number: int, stream: StreamId
) -> list[Sign]:
    groups = match.groupdict()
    if pattern.what == "event":
        return [_event(pattern.id, groups, text, number, stream)]
    if pattern.what == "death":
        return _deaths(pattern.id, groups, text, number, stream)
    return [_interrupt(pattern.id, groups, text, number, stream)]


def _event(
    kind: str, groups: dict[str, str | None], text: str, number: int, stream: StreamId
) -> NativeEvent:
    return NativeEvent(
        kind=kind,
        line=number,
        stream=stream,
        text=text,
        message=groups.get("message") or "",
        file=groups.get("file"),
        lineno=_int(groups.get("line")),
        api=groups.get("api"),
        code=_int(groups.get("code")),
        pid=_int(groups.get("pid")),
    )


def _deaths(
    source: str, groups: dict[str, str | None], text: str, number: int, stream: StreamId
) -> list[Sign]:
    table = groups.get("table")
    if table is not None:
        pairs = re.findall(_TABLE, table)
        return [_death(source, text, number, stream, name, code=int(code)) for name, code in pairs]
    code = _int(groups.get("code") or groups.get("code2"))
    name = groups.get("signal") or _WORDS.get(groups.get("word") or "")
    if name and not name.startswith("SIG"):
        name = "SIG" + name if name.isupper() and code != 0 else None
    pid = _int(groups.get("pid") or groups.get("pid2") or groups.get("pid3"))
    return [
        _death(
            source, text, number, stream, groups.get("process"),
            code=code, name=name, pid=pid, rank=_int(groups.get("rank")),
        )
    ]  # fmt: skip


def _death(
    source: str, text: str, number: int, stream: StreamId, process: str | None, *,
    code: int | None, name: str | None = None, pid: int | None = None, rank: int | None = None,
) -> Death:  # fmt: skip
    return Death(source, number, stream, text, process, pid, rank, code, name or signal_of(code))


def signal_of(code: int | None) -> str | None:
    """Name the signal that an exit code stands for: -9 and 137 are SIGKILL."""
    if code is None:
        return None
    number = -code if code < 0 else code - _SHELL_BASE
    try:
        return signal.Signals(number).name if number > 0 else None
    except ValueError:
        return None


def _interrupt(
    kind: str, groups: dict[str, str | None], text: str, number: int, stream: StreamId
) -> Interrupt:
    name = groups.get("signal")
    if name and name.isdigit():
        name = signal_of(-int(name[:4]))
    if kind == "ctrl_c":
        return Interrupt("ctrl_c", number, stream, text, "SIGINT")
    return Interrupt("signal" if kind == "signal" else "shutdown", number, stream, text, name)


def _int(digits: str | None) -> int | None:
    if not digits:
        return None
    try:
        return int(digits[:18], _HEX if digits.startswith("0x") else 10)
    except ValueError:
        return None
