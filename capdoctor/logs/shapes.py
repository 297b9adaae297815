"""Learns what stands in front of every line of a log: the mark of a collector unknown here.

`grep -n`, `cat -n`, `ts`, stern, pm2, syslog and many others each have a shape of their own; what
they have in common is that nearly every line begins alike, digits aside.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_NEARLY_ALL = 0.95
_FEWEST = 3  # lines
_LONGEST = 160  # characters
_PIECE = r"\d+|[ \t]+|[A-Za-z_]+|."
_MONTHS_AND_DAYS = re.compile(
    "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun"
)
_STREAMS = frozenset({"stdout", "stderr"})
# Where a log's own line begins: what a shape must not reach into.
_OWN = (
    r"\(\w[^()]* pid=0|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?: 0-0|:? +\w+\.py)"
    r'|[ \t]*File "|Traceback \(|\[rank0\]|\{"|\[[IWEF]0 0:|- (?:INFO|ERROR) - $'
)
# What a line without the mark of its collector begins with, in some line at least.
_PROOF = (
    r'\s{0,8}File "|Traceback \(most|\(\w[^()]* pid=\d|\[rank\d|\{"|\[\d{4}-\d\d-\d\d '
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-"
)


def learn_front(lines: Sequence[str]) -> re.Pattern[str] | None:
    """Give a pattern for what nearly all these lines begin with; None if they do not.

    Believed only if what follows it looks like a log: a traceback, a record, a process.
    """
    filled = [line[:_LONGEST] for line in lines if line.strip()]
    if len(filled) < _FEWEST:
        return None
    rows = [re.findall(_PIECE, line) for line in filled]
    shape = _own_part_cut(_common(rows))
    while shape and (shape[-1][0].isalnum() or shape[-1][0] in "([{_\"'"):
        shape.pop()  # a word may go on in the line itself
    if not shape:
        return None
    pattern = re.compile(_pattern(shape, rows))
    proofs = (pattern.match(line) for line in filled)
    sure = any(found and re.match(_PROOF, found.string[found.end() :]) for found in proofs)
    return pattern if sure else None


def _common(rows: list[list[str]]) -> list[str]:
    """Give the kinds of token that nearly all rows begin with."""
    enough, left = _NEARLY_ALL * len(rows), rows
    shape: list[str] = []
    while True:
        at = len(shape)
        left = [row for row in left if len(row) > at]
        kinds = Counter(_kind(row[at]) for row in left).most_common(1)
        if not kinds or kinds[0][1] < enough:
            return shape
        shape.append(kinds[0][0])
        left = [row for row in left if _kind(row[at]) == shape[-1]]


def _kind(token: str) -> str:
    if token.isdigit():
        return "0"
    if token.isspace():
        return " "
    if token in _STREAMS:
        return "stdout"
    return "Mon" if _MONTHS_AND_DAYS.fullmatch(token) else token


def _own_part_cut(shape: list[str]) -> list[str]:
    found = re.search(_OWN, "".join(shape))
    if found is None:
        return shape
    length, kept = 0, []
    for kind in shape:
        if length + len(kind) > found.start():
            break
        kept.append(kind)
        length += len(kind)
    return kept


def _pattern(shape: list[str], rows: list[list[str]]) -> str:
    """Spaces inside may vary; those at the end are as many as every line has."""
    last = len(shape) - 1
    known = {"0": r"\d+", "Mon": "[A-Z][a-z]{2}", "stdout": "std(?:out|err)"}
    parts = []
    for at, kind in enumerate(shape):
        if kind != " ":
            parts.append(known.get(kind) or re.escape(kind))
        elif at < last:
            parts.append(r"[ \t]*" if at == 0 else r"[ \t]+")
        else:
            fewest = min(len(row[at]) for row in rows if _fits(row, at, shape))
            parts.append(rf"[ \t]{{{fewest}}}")
    return "".join(parts)


def _fits(row: list[str], at: int, shape: list[str]) -> bool:
    return len(row) > at and [_kind(token) for token in row[: at + 1]] == shape
