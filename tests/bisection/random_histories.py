"""Random histories with islands, other crashes and noise, and what their answers must hold."""

from __future__ import annotations

import random
from dataclasses import dataclass

from capdoctor.bisection.search.case import Ending, Settings
from tests.bisection.simulated import Log, Made, bisect_made, seeded

RATES = (0.9, 0.7, 0.5)


@dataclass(frozen=True)
class Trial:
    """A history and how it is bisected. A flaky one is known to be so, as a user would say."""

    made: Made
    prior: tuple[float, ...] | None
    workers: int
    flaky: bool


def trial(seed: int) -> Trial:
    """Return the trial of a seed: 2 to 256 commits, up to three regions, one in five flaky."""
    rng = seeded(seed)
    size = rng.choice((2, 3, 5, 8, 13, 32, 64, 100, 256))
    culprit = rng.randint(1, size)
    flaky = rng.random() < 0.2
    made = Made(size, culprit, _islands(rng, size), rng.choice(RATES) if flaky else 1.0)
    prior = _prior(rng, size, culprit) if rng.random() < 0.4 else None
    workers = 1 if flaky else rng.choice((1, 1, 1, 2, 3))
    return Trial(made, prior, workers, flaky)


def _islands(rng: random.Random, size: int) -> tuple[tuple[int, int, str], ...]:
    """Return regions that leave both ends alone; scattered single commits are among them."""
    if size < 4:
        return ()
    found = []
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        length = rng.choice((1, 1, 2, 4, size // 4, size // 2))
        first = rng.randint(1, max(1, size - 1 - length))
        last = min(size - 1, first + length - 1)
        found.append((first, last, rng.choice(("unbuildable", "s1:aa", "s1:bb"))))
    return tuple(found)


def _prior(rng: random.Random, size: int, culprit: int) -> tuple[float, ...]:
    """Return a prior that is right, wrong or random."""
    weights = [rng.random() ** 4 + 1e-4 for _ in range(size)]
    kind = rng.choice(("right", "wrong", "random"))
    if kind == "right":
        weights[culprit - 1] += 5.0
    elif kind == "wrong":
        weights[culprit - 1] = 1e-4
    return tuple(weights)


def judge_trial(one: Trial, seed: int) -> str:
    """Bisect the trial's history; return what is wrong with the answer, if anything is."""
    settings = Settings(known_flaky=one.flaky)
    rng = seeded(seed + 1_000_000)
    log = bisect_made(one.made, rng, settings=settings, prior=one.prior, workers=one.workers)
    return _complaint(one.made, log, flaky=one.flaky)


def _complaint(made: Made, log: Log, *, flaky: bool) -> str:
    end = log.end
    if end.ending is Ending.BAD_END_CLEAN and flaky:
        return ""  # an honest answer for a crash that did not come in fifteen runs
    if not end.lo < made.culprit <= end.hi:
        return f"{end.ending} ({end.lo}, {end.hi}] does not hold {made.culprit}"
    if end.ending is Ending.FOUND and end.hi - end.lo != 1:
        return f"a culprit of {end.hi - end.lo} commits"
    if end.ending is Ending.RANGE and not flaky:
        between = [made.why_untestable(at) for at in range(end.lo + 1, end.hi)]
        if not any(between):
            return f"a range ({end.lo}, {end.hi}] of testable commits"
        if _one_region_a_label(made) and not all(between):
            return f"a range ({end.lo}, {end.hi}] with testable commits in it"
    return ""


def _one_region_a_label(made: Made) -> bool:
    """Say whether what is presumed of an island is true here."""
    labels = [why for _, _, why in made.islands]
    return len(labels) == len(set(labels))
