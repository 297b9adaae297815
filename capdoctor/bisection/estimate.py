"""How many runs are left, and how long they will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, median

from capdoctor.bisection.device_control import HOW
from capdoctor.bisection.journal.story import Run
from capdoctor.bisection.search.bracket import newest_transition
from capdoctor.bisection.search.case import Case
from capdoctor.bisection.search.evidence import NO_RUNS, count
from capdoctor.bisection.search.flaky import is_flaky
from capdoctor.bisection.search.posterior import posterior

# Bits that a well placed run of a flaky crash gives, as a share of its rate (simulated at 0.3
# to 0.9), and the clean runs at the parent that confirmation takes on top.
FLAKY_BITS = 0.45


def runs_left(case: Case) -> int:
    """Return about how many runs are still to be made, confirmation included."""
    tallies = count(case.seen)
    missing = sum(1 for at in (0, case.size) if not tallies.get(at, NO_RUNS).runs)
    around = newest_transition(tallies, case.size)
    weights = None if case.prior is None else case.prior[around.lo : around.hi]
    bits = entropy(weights) if weights else math.log2(max(1, around.hi - around.lo))
    confirm = sum(
        max(0, case.settings.confirm - max(1, tallies.get(at, NO_RUNS).runs))
        for at in (around.lo, around.hi)
    )
    if not is_flaky(case, tallies):
        return missing + math.ceil(bits) + confirm
    belief = posterior(tallies, case.size, case.prior, reliable=0.0)
    sure = math.log(case.settings.risk) / math.log(max(1e-3, 1 - belief.rate))
    return missing + math.ceil(entropy(belief.share) / (FLAKY_BITS * belief.rate) + sure)


def entropy(weights: Sequence[float]) -> float:
    """Return the entropy in bits of weights that need not add up to 1."""
    total = sum(weights)
    return sum(-w / total * math.log2(w / total) for w in weights if w > 0)


def minutes_left(left: int, runs: Sequence[Run], workers: int) -> float | None:
    """Return the minutes that ``left`` runs will take, from measured ones; None without any."""
    runs = _whole(runs)
    if not runs:
        return None
    each = mean(run.observation.seconds + run.observation.setup_seconds for run in runs)
    return left * each / workers / 60


def switch_cost(runs: Sequence[Run]) -> float:
    """Return what setting up another commit costs, in runs."""
    runs = _whole(runs)
    if not runs:
        return 1.0
    setup = median(run.observation.setup_seconds for run in runs)
    run = median(run.observation.seconds for run in runs)
    return min(5.0, setup / run) if run > 0 else 1.0


def _whole(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that ran a commit: a look at a device takes a second and tells nothing."""
    return [run for run in runs if run.observation.provisioning != HOW]
