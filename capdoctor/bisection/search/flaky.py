"""Search and confirmation when the same commit now crashes and now does not."""

from __future__ import annotations

from collections.abc import Mapping

from capdoctor.bisection.search.case import Case, End, Ending, Purpose, Runs, Step
from capdoctor.bisection.search.evidence import NO_RUNS, Tally, untestable
from capdoctor.bisection.search.islands import inner_cut, stretches
from capdoctor.bisection.search.patience import Bench, group_of, next_flaky_run
from capdoctor.bisection.search.posterior import Posterior, posterior
from capdoctor.bisection.search.window import Window


def is_flaky(case: Case, tallies: Mapping[int, Tally]) -> bool:
    """Say whether any commit both crashed and did not, or the crash is known for it."""
    return case.settings.known_flaky or any(tally.mixed for tally in tallies.values())


def flaky_step(case: Case, tallies: dict[int, Tally]) -> Step:
    """Return the next runs, or the end, for a crash that is known to be flaky."""
    bad = tallies.get(case.size, NO_RUNS)
    to_measure = bad.mixed or case.settings.known_flaky
    if to_measure and bad.runs + case.in_flight.count(case.size) < case.settings.measure:
        return Runs(Purpose.BAD_END, (case.size,) * case.free)
    belief = posterior(tallies, case.size, case.prior, reliable=0.0)
    closed = _closed(tallies)
    lo, hi = group_of(belief, closed)
    share = sum(belief.share[max(0, lo + 1) : hi + 1])
    if len(case.seen) >= case.settings.most_runs:
        return _out_of_runs(belief)
    if hi > 0 and share >= case.settings.certainty:
        return _settle(case, tallies, belief, (lo, hi, share))
    bench = Bench(case.seen[-1].position, case.settings.switch_cost, frozenset(closed))
    at = next_flaky_run(belief, bench)
    return _out_of_runs(belief) if at is None else Runs(Purpose.SEARCH, (at,) * case.free)


def _settle(
    case: Case, tallies: dict[int, Tally], belief: Posterior, best: tuple[int, int, float]
) -> Step:
    """Confirm the likeliest group: enough runs at both sides, look into an island, or end."""
    lo, hi, share = best
    for at in (hi, lo):
        tally = tallies.get(at, NO_RUNS)
        proven = tally.crashes if at == hi else tally.cleans
        if tally.runs < case.settings.confirm or (case.settings.confirm and not proven):
            return Runs(Purpose.CONFIRM, (at,) * case.free)
    if share < 1 - case.settings.risk:
        return Runs(Purpose.CONFIRM, (lo,) * case.free)
    if hi - lo > 1:
        inside = {at: why for at, why in untestable(tallies).items() if lo < at < hi}
        cut = inner_cut(Window(lo, hi, None, inside))
        if cut is not None:
            return Runs(Purpose.SEARCH, (cut,))
        reason = "the commits in between cannot be judged"
        return End(Ending.RANGE, lo, hi, share, flaky=True, rate=belief.rate, reason=reason)
    return End(Ending.FOUND, lo, hi, share, flaky=True, rate=belief.rate)


def _closed(tallies: Mapping[int, Tally]) -> dict[int, str]:
    judged = frozenset(at for at, tally in tallies.items() if tally.runs)
    islands = stretches(untestable(tallies), judged)
    return {at: island.label for island in islands for at in range(island.first, island.last + 1)}


def _out_of_runs(belief: Posterior) -> End:
    """Answer the shortest stretch that holds all but a hundredth of the probability."""
    lo, hi = _credible(belief.share, 0.995)
    ending = Ending.UNCONFIRMED if hi - lo == 1 else Ending.RANGE
    share = sum(belief.share[lo + 1 : hi + 1])
    reason = "the crash is too rare for the runs that were allowed"
    return End(ending, lo, hi, share, flaky=True, rate=belief.rate, reason=reason)


def _credible(share: tuple[float, ...], wanted: float) -> tuple[int, int]:
    hi = max(at for at, value in enumerate(share) if value > 0)
    total, lo = 0.0, hi
    while lo > 0 and total < wanted:
        total += share[lo]
        lo -= 1
    return lo, hi
