"""Cuts for several workers: runs in flight divide the window like verdicts still unknown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from capdoctor.bisection.search.cuts import next_cut
from capdoctor.bisection.search.window import Window


def spread(view: Window, free: int, in_flight: Sequence[int], spent: int, limit: int) -> list[int]:
    """Return up to ``free`` positions to run at once.

    An idle start takes even dividers of the weight, which needs the fewest rounds; a worker that
    becomes free later takes the middle of the heaviest gap between runs in flight.
    """
    flying = sorted(at for at in set(in_flight) if view.lo < at < view.hi)
    if free > 1 and not flying and not view.skips:
        return _even(view, free)
    picked: list[int] = []
    for _ in range(free):
        cut = _gap_cut(view, sorted([*flying, *picked]), spent, limit)
        if cut is None:
            break
        picked.append(cut)
    return picked


def _even(view: Window, parts: int) -> list[int]:
    below = view.mass_below()
    wanted = (bisect_left(below, part / (parts + 1)) for part in range(1, parts + 1))
    inside = (min(max(at, 1), view.size - 1) for at in wanted)
    return sorted({view.lo + at for at in inside}) if view.size > 1 else []


def _gap_cut(view: Window, flying: list[int], spent: int, limit: int) -> int | None:
    below = view.mass_below()
    gaps = [
        (below[b - view.lo] - below[a - view.lo], b - a, a, b)
        for a, b in pairwise([view.lo, *flying, view.hi])
    ]
    for _, _, a, b in sorted(gaps, key=lambda gap: (-gap[0], -gap[1], gap[2])):
        cut = next_cut(view.part(a, b), spent, limit)
        if cut is not None:
            return cut
    return None
