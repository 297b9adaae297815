"""Cut a weighted list with the aim of being done in few runs, and a hard limit behind it.

Halving the weight gives the best mean; aiming at an end within ``aim`` runs gives the best share
of bisections that end within them, at a price of a quarter run in the mean. The limit keeps a
misleading prior from costing more than two runs over binary search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from operator import add

HEAVY = 32  # candidates whose two sides are always considered as cuts
EVEN = 15  # evenly spread cuts considered beside them
LATE_PRICE = 4.0  # runs that "not done within the aim" is charged with
ROUNDING = 0.3  # a real tree is about this much longer than the entropy


def aimed_cut(weights: Sequence[float], left: int, aim: int) -> int:
    """Return k, 0 < k < len(weights): run the k-th candidate next.

    ``left`` is how many runs may still be made at most (2**left >= len(weights) must hold);
    ``aim`` within how many one would like to be done. Never leaves a side that the remaining
    runs could not finish.
    """
    if aim <= 0:
        return clamped_half(weights, left)
    plan = _Plan(weights, left, aim)
    return plan.first_cut() or clamped_half(weights, left)


def clamped_half(weights: Sequence[float], left: int) -> int:
    """Return the cut nearest to half the weight whose sides both fit into left - 1 runs."""
    size = len(weights)
    most = 2 ** max(0, left - 1)
    low, high = max(1, size - most), min(size - 1, most)
    half = sum(weights) / 2
    sums = list(accumulate(weights))
    return min(range(low, high + 1), key=lambda k: (abs(sums[k - 1] - half), abs(2 * k - size)))


class _Plan:
    """The dynamic programme over few cut points; cost[b][i][j] for point indices i < j."""

    def __init__(self, weights: Sequence[float], left: int, aim: int) -> None:
        total = sum(weights)
        self.weights = [value / total for value in weights]
        self.left = left
        self.aim = aim
        self.points = _cut_points(self.weights)
        self.mass = [0.0, *accumulate(self.weights)]
        self.plogp = [0.0, *accumulate(-w * math.log2(w) if w > 0 else 0.0 for w in self.weights)]

    def first_cut(self) -> int | None:
        """Return the first cut of the best plan, or None when the best is not to aim at all."""
        rows, columns = self._level(0, None)
        for runs in range(1, self.aim):
            rows, columns = self._level(runs, (rows, columns))
        last = len(self.points) - 1
        stop = self._stopped[0][last] if self._fits(0, last, self.aim) else math.inf
        costs = list(map(add, rows[0][1:last], columns[last][1:last]))
        if not costs or 1.0 + min(costs) >= stop or math.isinf(min(costs)):
            return None
        return self.points[1 + costs.index(min(costs))]

    @cached_property
    def _stopped(self) -> list[list[float]]:
        points = range(len(self.points))
        return [[self._price_of_stopping(i, j) if j > i else 0.0 for j in points] for i in points]

    def _price_of_stopping(self, i: int, j: int) -> float:
        a, b = self.points[i], self.points[j]
        mass = self.mass[b] - self.mass[a]
        if b - a == 1 or mass <= 0:
            return 0.0
        entropy = (self.plogp[b] - self.plogp[a]) / mass + math.log2(mass)
        return mass * (LATE_PRICE + max(0.0, entropy) + ROUNDING)

    def _fits(self, i: int, j: int, runs: int) -> bool:
        span = self.points[j] - self.points[i]
        return span <= 2.0 ** (self.left - (self.aim - runs))

    def _level(
        self, runs: int, cheaper: tuple[list[list[float]], list[list[float]]] | None
    ) -> tuple[list[list[float]], list[list[float]]]:
        """Return the costs with this many runs to go, as rows [i][j] and columns [j][i]."""
        width = len(self.points)
        rows = [[math.inf] * width for _ in range(width)]
        columns = [[math.inf] * width for _ in range(width)]
        for i in range(width):
            for j in range(i + 1, width):
                rows[i][j] = columns[j][i] = self._cost(i, j, runs, cheaper)
        return rows, columns

    def _cost(
        self,
        i: int,
        j: int,
        runs: int,
        cheaper: tuple[list[list[float]], list[list[float]]] | None,
    ) -> float:
        if self.points[j] - self.points[i] == 1:
            return 0.0
        if not self._fits(i, j, runs):
            return math.inf
        best = self._stopped[i][j]
        if cheaper and j - i > 1:
            rows, columns = cheaper
            cut = min(map(add, rows[i][i + 1 : j], columns[j][i + 1 : j]))
            best = min(best, self.mass[self.points[j]] - self.mass[self.points[i]] + cut)
        return best


def _cut_points(weights: Sequence[float]) -> list[int]:
    size = len(weights)
    heavy = sorted(range(size), key=lambda at: -weights[at])[:HEAVY]
    even = (round(size * part / (EVEN + 1)) for part in range(1, EVEN + 1))
    return sorted({0, size, *heavy, *(at + 1 for at in heavy), *even})
