"""A request over a line of 64 commits, whose fate a stub decides; ``conftest`` makes the line."""

from __future__ import annotations

from pathlib import Path

from capdoctor.bisection import BisectRequest

Repo = tuple[Path, tuple[str, ...]]


def request_for(line: Repo, **more: object) -> BisectRequest:
    return BisectRequest(str(line[0]), "0.1.0", "main", **more)  # type: ignore[arg-type]
