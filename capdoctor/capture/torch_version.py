"""Which torch the virtual device follows, and ranges of torch releases in the rule tables."""

from __future__ import annotations

import re

from capdoctor.errors import UsageError

Release = tuple[int, int]


def parse_release(text: str) -> Release:
    """Read ``2.13`` or ``2.13.0+cpu`` as (2, 13).

    Raises:
        UsageError: the text is no torch version.
    """
    match = re.match(r"(\d+)\.(\d+)(?:[.+a-z].*)?$", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a torch version.", "Write it as 2.11 or 2.13.")
    return int(match[1]), int(match[2])


def in_range(release: Release, condition: str) -> bool:
    """Say whether a release is meant by ``2.11`` (older), ``>=2.13`` or ``2.13..2.14``."""
    if condition.startswith(">="):
        return release >= parse_release(condition[2:])
    if ".." in condition:
        first, below = condition.split("..")
        return parse_release(first) <= release < parse_release(below)
    return release < parse_release(condition)
