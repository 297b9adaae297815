"""A made-up history and a bisection of it by ``advise`` alone: no git, no engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from capdoctor.bisection.search.advise import advise
from capdoctor.bisection.search.case import Case, End, Settings
from capdoctor.bisection.search.evidence import Mark, Seen


def seeded(seed: int) -> random.Random:
    """Return the same stream of numbers for the same seed."""
    return random.Random(seed)  # noqa: S311 - simulation, not cryptography


@dataclass(frozen=True)
class Made:
    """Positions 0..size; ``culprit`` crashes first, at ``rate``; islands are (first, last, why)."""

    size: int
    culprit: int
    islands: tuple[tuple[int, int, str], ...] = ()
    rate: float = 1.0
    healed: tuple[tuple[int, int], ...] = ()

    def why_untestable(self, at: int) -> str | None:
        return next((why for first, last, why in self.islands if first <= at <= last), None)

    def run(self, at: int, rng: random.Random) -> Seen:
        why = self.why_untestable(at)
        if why:
            return Seen(at, Mark.SKIP, why)
        healed = any(first <= at <= last for first, last in self.healed)
        crashes = at >= self.culprit and not healed and rng.random() < self.rate
        return Seen(at, Mark.CRASH if crashes else Mark.CLEAN)


@dataclass
class Log:
    """What a simulated bisection cost and said."""

    end: End
    seen: list[Seen] = field(default_factory=list)
    rounds: int = 0

    @property
    def runs(self) -> int:
        return len(self.seen)

    @property
    def switches(self) -> int:
        ats = [one.position for one in self.seen]
        return 1 + sum(1 for a, b in pairwise(ats) if a != b)


def bisect_made(
    made: Made,
    rng: random.Random,
    *,
    settings: Settings | None = None,
    prior: Sequence[float] | None = None,
    workers: int = 1,
    most: int = 5000,
) -> Log:
    """Run the bisection in rounds of ``workers`` runs."""
    seen: list[Seen] = []
    rounds = 0
    weights = None if prior is None else tuple(prior)
    while len(seen) <= most:
        case = Case(made.size, tuple(seen), weights, settings or Settings(), free=workers)
        step = advise(case)
        if isinstance(step, End):
            return Log(step, seen, rounds)
        assert step.positions, "nothing in flight, and still told to wait"
        rounds += 1
        seen.extend(made.run(at, rng) for at in step.positions)
    raise AssertionError(f"no end after {most} runs: {made}")
