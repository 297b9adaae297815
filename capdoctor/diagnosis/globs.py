"""Globs over frames: ``path:function`` against patterns of the data files; ``*`` is the only sign.

Plain string search: compiling a hundred globs to one regular expression costs more than a whole
small log.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def _parts(glob: str) -> tuple[str, ...]:
    return tuple((glob if ":" in glob else glob + ":*").split("*"))


def glob_fits(text: str, glob: str) -> bool:
    """Say whether the whole text fits the glob."""
    first, *rest = _parts(glob)
    if not rest:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - at >= len(rest[-1]) and text.endswith(rest[-1])


@lru_cache(maxsize=8192)
def frame_fits(path: str, function: str | None, globs: tuple[str, ...]) -> bool:
    """Say whether one of the globs fits; a glob without ``:`` fits every function of the file."""
    text = f"{path}:{function or ''}"
    return any(glob_fits(text, glob) for glob in globs)
