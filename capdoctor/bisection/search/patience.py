"""The next run when crashes are flaky: most bits for the time, changing the commit priced in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from capdoctor.bisection.search.islands import HALF_DISTANCE
from capdoctor.bisection.search.posterior import Posterior
from capdoctor.bisection.search.window import surprise

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16)
NOTHING = 1e-9  # a share this near to 0 or 1 leaves nothing to learn
QUANTILES = 96  # positions considered in a long list


@dataclass(frozen=True, slots=True)
class Bench:
    """What stands on the bench: the commit that is set up now, and what changing it costs.

    ``switch_cost`` is in units of one run; ``closed`` are positions that cannot be judged, known
    or presumed, with the distance rule applied to their neighbours.
    """

    current: int | None = None
    switch_cost: float = 1.0
    closed: frozenset[int] = frozenset()


def next_flaky_run(belief: Posterior, bench: Bench) -> int | None:
    """Return the position whose runs give most bits for their cost; None if none gives any."""
    below = belief.at_or_below()
    scored = {at: _value(at, below[at], belief.rate, bench) for at in _places(below, bench)}
    best = max(scored, key=lambda at: (scored[at], -at), default=None)
    return best if best is not None and scored[best] > 0.0 else None


def _places(below: list[float], bench: Bench) -> list[int]:
    open_places = [
        at
        for at, share in enumerate(below[:-1])
        if NOTHING < share < 1 - NOTHING and at not in bench.closed
    ]
    if len(open_places) <= QUANTILES:
        return open_places
    shares = [below[at] for at in open_places]
    picks = {bisect_left(shares, part / QUANTILES) for part in range(1, QUANTILES)}
    kept = {open_places[pick] for pick in picks if pick < len(open_places)}
    if bench.current in open_places:
        kept.add(bench.current)
    return sorted(kept)


def _value(at: int, share: float, rate: float, bench: Bench) -> float:
    """Return the bits a unit of cost buys at this position, with the best number of runs."""
    switch = 0.0 if at == bench.current else bench.switch_cost
    return _chance(at, bench.closed) * max(
        _bits(share, rate, runs) / (switch + _expected_runs(share, rate, runs)) for runs in BATCHES
    )


def _bits(share: float, rate: float, runs: int) -> float:
    seen = 1 - (1 - rate) ** runs
    return surprise(share * seen) - share * surprise(seen)


def _expected_runs(share: float, rate: float, runs: int) -> float:
    """Return the runs of a batch that ends with its first crash."""
    return (1 - share) * runs + share * (1 - (1 - rate) ** runs) / rate


def _chance(at: int, closed: frozenset[int]) -> float:
    if not closed:
        return 1.0
    distance = min(abs(at - other) for other in closed)
    return 1 - 1 / (1 + distance / HALF_DISTANCE)


def group_of(belief: Posterior, closed: Mapping[int, str] | frozenset[int]) -> tuple[int, int]:
    """Return (lo, hi]: the likeliest candidates that no open position could tell apart."""
    best, best_share, lo, share = (0, 0), -1.0, -1, 0.0
    for at, value in enumerate(belief.share):
        share += value
        if at in closed and at < len(belief.share) - 1:
            continue
        if share > best_share:
            best, best_share = (lo, at), share
        lo, share = at, 0.0
    return best
