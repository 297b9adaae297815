"""Literal texts that a regular expression cannot do without.

Compiling a pattern costs more than searching a log for a word. ``pack.py`` notes for every pattern
of a signature a set of texts one of which must be there (lower case); where none is, the pattern is
never compiled.
"""

from __future__ import annotations

import re._constants as kind  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_LEAST = 3


def needed_texts(pattern: str) -> list[str]:
    """Give lower-case texts one of which is in every match; empty when there are none."""
    best = _needed(list(parser.parse(pattern, 0)))
    return sorted(best) if best and min(map(len, best)) >= _LEAST else []


def _needed(items: list[Any]) -> set[str]:
    """The most telling set of texts of a sequence: each item of it must match."""
    candidates: list[set[str]] = []
    literal = ""
    for operation, argument in items:
        if operation is kind.LITERAL:
            literal += chr(argument).lower()
            continue
        if literal:
            candidates.append({literal})
            literal = ""
        candidates.append(_of_item(operation, argument))
    if literal:
        candidates.append({literal})
    usable = [one for one in candidates if one and all(one)]
    return max(usable, key=lambda one: min(map(len, one)), default=set())


def _of_item(operation: Any, argument: Any) -> set[str]:
    if operation is kind.SUBPATTERN:
        return _needed(list(argument[-1]))
    if operation is kind.BRANCH:
        branches = [_needed(list(branch)) for branch in argument[1]]
        return set().union(*branches) if all(branches) else set()
    if operation in {kind.MAX_REPEAT, kind.MIN_REPEAT} and argument[0] >= 1:
        return _needed(list(argument[2]))
    return set()
