"""A signature for a failure that no engine wrote: a test, a script, a command that just ends.

The diagnosis knows engines. What a command prints is often a plain traceback, or nothing: its
failures still have to be told apart, or every other one would count as the one looked for.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from capdoctor.logs import ExceptionNode, read_log

DEPTH = 3  # innermost functions that make up the signature, as in a fingerprint
TAIL = 64 * 1024  # bytes at the end of the output in which a last line is looked for
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,40}\b|\d+(?:\.\d+)*|/\S+", re.IGNORECASE)


def plain_signature(log: Path, code: int) -> tuple[str, str]:
    """Return signature and title: of the exception, else of exit code and last line printed."""
    nodes = _exceptions(log) if log.stat().st_size else []
    if nodes:
        node = _root(nodes)
        places = [
            f"{Path(frame.file).name}:{frame.function}"
            for frame in node.frames
            if "/lib/python3" not in frame.file
        ]
        what = "|".join([str(node.type), *places[-DEPTH:]])
        return _digest(what), f"{node.type}: {node.message.split(chr(10), 1)[0][:120]}"
    last = _last_line(log)
    title = f"exit code {code}" + (f": {last[:120]}" if last else "")
    return _digest(f"exit {code}|{_VARYING.sub('#', last)}"), title


def _exceptions(log: Path) -> list[ExceptionNode]:
    return [node for run in read_log(log).runs for node in run.nodes if node.type]


def _root(nodes: list[ExceptionNode]) -> ExceptionNode:
    """Return what the last exception comes from: the first of the nodes it is linked to."""
    by_index = {node.index: node for node in nodes}
    node, seen = nodes[-1], set[int]()
    while node.index not in seen:
        seen.add(node.index)
        causes = [by_index[link.to] for link in node.links if link.to in by_index]
        if causes:
            node = causes[0]
    return node


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL))
        lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _digest(text: str) -> str:
    return f"c1:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
