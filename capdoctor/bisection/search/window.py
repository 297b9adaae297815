"""The part of the list that still holds the culprit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Window:
    """Candidates lo+1..hi. A cut is a position strictly between ``lo`` and ``hi``.

    ``weights`` holds one positive weight a candidate, None when all are alike; ``skips`` the
    positions inside that could not be judged, with the label of why; ``scattered`` the labels that
    are known to turn up in several places.
    """

    lo: int
    hi: int
    weights: tuple[float, ...] | None = None
    skips: Mapping[int, str] = field(default_factory=dict)
    scattered: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many candidates are left."""
        return self.hi - self.lo

    def mass_below(self) -> list[float]:
        """Return the share of the weight in the first k candidates, for k = 0..size."""
        if self.weights is None:
            return [k / self.size for k in range(self.size + 1)]
        sums = [0.0, *accumulate(self.weights)]
        return [value / sums[-1] for value in sums]

    def part(self, lo: int, hi: int) -> Window:
        """Return the window (lo, hi] inside this one."""
        weights = self.weights and self.weights[lo - self.lo : hi - self.lo]
        inside = {at: why for at, why in self.skips.items() if lo < at < hi}
        return Window(lo, hi, weights, inside, self.scattered)


def surprise(share: float) -> float:
    """Return the entropy in bits of an event with this probability."""
    if share <= 0.0 or share >= 1.0:
        return 0.0
    rest = 1.0 - share
    return -share * math.log2(share) - rest * math.log2(rest)
