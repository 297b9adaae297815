"""What flaky runs say about where the first crash is.

A run at a crashing commit crashes with a rate that is the same for all of them and unknown; a run
at a clean commit never does (the signature is matched). The rate is integrated out: with K
crashes and J clean runs on the crashing side, a hypothesis weighs as the Beta function of K and J.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log

from capdoctor.bisection.search.evidence import Tally

OUTSIDE = 0.02  # prior share of "the clean end crashes too": the culprit is not in the range
# Prior of the rate, as a Beta distribution: neither almost never nor almost always. Simulated
# against a flat one it saves three runs in forty at a rate of one half and stays calibrated.
SHAPE = 2
RELIABLE = 0.9  # prior share of crashes that happen every time; the rest have any rate


@dataclass(frozen=True, slots=True)
class Posterior:
    """``share[c]`` is the probability that c is the first crashing position (0: none in range).

    ``rate`` is how often a crashing commit crashes, estimated from runs that surely hit one.
    """

    share: tuple[float, ...]
    rate: float

    def at_or_below(self) -> list[float]:
        """Return, for every position, the probability that it is on the crashing side."""
        total, sums = 0.0, []
        for value in self.share:
            total += value
            sums.append(min(1.0, total))
        return sums


def posterior(
    tallies: Mapping[int, Tally],
    size: int,
    prior: Sequence[float] | None,
    reliable: float = RELIABLE,
) -> Posterior:
    """Return the posterior over 0..size; ``prior[c - 1]`` is the weight of candidate c."""
    crashes = sum(tally.crashes for tally in tallies.values())
    oldest = min((at for at, tally in tallies.items() if tally.crashes), default=size)
    start = _log_prior(size, prior)
    cleans = sum(tally.cleans for at, tally in tallies.items() if at > oldest)
    logs: list[float] = [0.0] * (oldest + 1)
    for at in range(oldest, -1, -1):
        cleans += tallies[at].cleans if at in tallies else 0
        logs[at] = start[at] + _log_likelihood(crashes, cleans, reliable)
    peak = max(logs)
    weights = [exp(value - peak) for value in logs]
    total = sum(weights)
    share = (*(value / total for value in weights), *([0.0] * (size - oldest)))
    return Posterior(share, rate(tallies))


def rate(tallies: Mapping[int, Tally]) -> float:
    """Return how often a crashing commit crashes, from the runs at and after the oldest crash."""
    oldest = min((at for at, tally in tallies.items() if tally.crashes), default=None)
    if oldest is None:
        return 0.5
    sure = [tally for at, tally in tallies.items() if at >= oldest]
    crashes, cleans = sum(t.crashes for t in sure), sum(t.cleans for t in sure)
    # The oldest crash is there because it crashed: it says less about the rate than the others.
    return (crashes + 0.5) / (crashes + cleans + 1)


def _log_prior(size: int, prior: Sequence[float] | None) -> list[float]:
    if prior is None:
        return [log(OUTSIDE), *([log((1 - OUTSIDE) / size)] * size)]
    total = sum(prior)
    return [log(OUTSIDE), *(log((1 - OUTSIDE) * max(w / total, 1e-12)) for w in prior)]


def _log_likelihood(crashes: int, cleans: int, reliable: float) -> float:
    flaky = _log_beta(crashes + SHAPE, cleans + SHAPE) - _log_beta(SHAPE, SHAPE)
    if cleans or not reliable:
        return flaky + log(1 - reliable)
    return log(reliable + (1 - reliable) * exp(flaky))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
