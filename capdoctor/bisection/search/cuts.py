"""The next cut of a window when crashes are reliable."""

from __future__ import annotations

import math

from capdoctor.bisection.search.aim import aimed_cut
from capdoctor.bisection.search.islands import edge_cut, inner_cut
from capdoctor.bisection.search.window import Window

AIM = 6  # search runs: with both ends that makes the eight runs we aim for
SLACK = 2  # runs that a prior may cost over binary search at most


def most_runs(candidates: int) -> int:
    """Return the limit of search runs: log2 of the candidates, and two."""
    return bits(candidates) + SLACK


def bits(candidates: int) -> int:
    """Return how many verdicts tell this many candidates apart."""
    return max(0, math.ceil(math.log2(candidates))) if candidates > 1 else 0


def next_cut(view: Window, spent: int, limit: int) -> int | None:
    """Return the position to run next; None when no verdict is left that could tell more.

    ``spent`` are the search runs made so far, ``limit`` the most that may be made. Without
    weights and without untestable commits this is exactly binary search.
    """
    if view.size <= 1:
        return None
    if view.skips:
        cut = edge_cut(view)
        return inner_cut(view) if cut is None else cut
    if view.weights is None:
        return (view.lo + view.hi) // 2
    left = max(limit - spent, bits(view.size))
    return view.lo + aimed_cut(view.weights, left, max(0, AIM - spent))
