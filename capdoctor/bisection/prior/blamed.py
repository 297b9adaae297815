"""Which commit of a range wrote the lines that a traceback names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from capdoctor.bisection.history.gitcall import git_or_none
from capdoctor.bisection.history.mirror import Mirror

_HEADER = re.compile(r"^([0-9a-f]{40,64}) \d+ (\d+)", re.MULTILINE)


def blamed(
    mirror: Mirror, older: str, newer: str, path: str, lines: Iterable[int]
) -> dict[int, str]:
    """Return line to commit for the lines of a file at ``newer`` that the range wrote.

    Lines that are older than the range, or that the file does not have, are left out.
    """
    wanted = sorted(set(lines))
    spans = [part for line in wanted for part in ("-L", f"{line},{line}")]
    out = git_or_none(
        mirror.folder,
        *("blame", "--first-parent", "--line-porcelain", "-w", *spans, f"{older}..{newer}"),
        *("--", path),
    )
    if out is None:
        return {}
    found: dict[int, str] = {}
    for block in _blocks(out):
        match = _HEADER.match(block)
        if match and "\nboundary\n" not in block:
            found[int(match[2])] = match[1]
    return found


def _blocks(porcelain: str) -> Iterable[str]:
    """Split at the lines of code, which begin with a tab."""
    block: list[str] = []
    for line in porcelain.split("\n"):
        if line.startswith("\t"):
            yield "\n".join([*block, ""])
            block = []
        else:
            block.append(line)
