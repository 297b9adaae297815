"""The whole bisection as one pure function: from what was seen to what to do next.

Ends first, then the search, then confirmation. Nothing is remembered between calls, so a resumed
or an edited history simply gives another answer.
"""

from __future__ import annotations

from collections import Counter

from capdoctor.bisection.search.bracket import contradictions, newest_transition
from capdoctor.bisection.search.case import Case, End, Ending, Purpose, Runs, Step
from capdoctor.bisection.search.cuts import most_runs
from capdoctor.bisection.search.dividers import spread
from capdoctor.bisection.search.evidence import NO_RUNS, Tally, count, untestable
from capdoctor.bisection.search.flaky import flaky_step, is_flaky
from capdoctor.bisection.search.islands import scattered_labels
from capdoctor.bisection.search.posterior import posterior
from capdoctor.bisection.search.window import Window

RARE = 3  # times as many tries at the bad end for a crash that is known to be flaky


def advise(case: Case) -> Step:
    """Return the runs to make next, or the end."""
    tallies = count(case.seen)
    step = _ends(case, tallies)
    if step is not None:
        return step
    if is_flaky(case, tallies):
        return flaky_step(case, tallies)
    return _recheck(case, tallies) or _search(case, tallies)


def _ends(case: Case, tallies: dict[int, Tally]) -> Step | None:
    """Prove both ends; None when they are proven."""
    bad, good = tallies.get(case.size, NO_RUNS), tallies.get(0, NO_RUNS)
    wanted: list[int] = []
    if not bad.crashes:
        end = _bad_end_gives_up(case, bad)
        if end is not None:
            return end
        wanted.append(case.size)
    if good.crashes and bad.crashes:
        return End(Ending.CLEAN_END_CRASHES, 0, 0, 1.0, reason="the good end crashes alike")
    if not good.runs:
        if len(good.labels) > case.settings.skip_tries:
            return End(Ending.END_UNTESTABLE, 0, case.size, 0.0, reason=good.labels[-1])
        wanted.append(0)
    if not wanted:
        return None
    return _not_twice(case, Purpose.BAD_END if wanted[0] else Purpose.GOOD_END, wanted)


def _bad_end_gives_up(case: Case, bad: Tally) -> End | None:
    if len(bad.labels) > case.settings.skip_tries and not bad.cleans:
        return End(Ending.END_UNTESTABLE, 0, case.size, 0.0, reason=bad.labels[-1])
    tries = case.settings.end_tries * (RARE if case.settings.known_flaky else 1)
    if bad.cleans + len(bad.labels) >= tries:
        sentence = f"the bad end did not crash in {bad.cleans} runs"
        return End(Ending.BAD_END_CLEAN, 0, case.size, 0.0, reason=sentence)
    return None


def _recheck(case: Case, tallies: dict[int, Tally]) -> Runs | None:
    """Repeat a clean run that is newer than a crash: flaky, or a second transition?"""
    for at in contradictions(tallies):
        if tallies[at].cleans < case.settings.confirm:
            return _not_twice(case, Purpose.RECHECK, [at])
    return None


def _search(case: Case, tallies: dict[int, Tally]) -> Step:
    around = newest_transition(tallies, case.size)
    view = _whole(case, tallies).part(around.lo, around.hi)
    spent = sum(1 for at in tallies if 0 < at < case.size)
    picked = spread(view, case.free, case.in_flight, spent, most_runs(case.size))
    flying = [at for at in case.in_flight if around.lo < at < around.hi]
    if picked or (flying and view.size > 1):
        return Runs(Purpose.SEARCH, tuple(picked))
    if view.size > 1:
        return _range(case, tallies)
    return _confirm(case, tallies)


def _whole(case: Case, tallies: dict[int, Tally]) -> Window:
    skips = untestable(tallies)
    judged = frozenset(at for at, tally in tallies.items() if tally.runs)
    return Window(0, case.size, case.prior, skips, scattered_labels(skips, judged))


def _range(case: Case, tallies: dict[int, Tally]) -> End:
    around = newest_transition(tallies, case.size)
    return End(
        Ending.RANGE,
        around.lo,
        around.hi,
        _confidence(case, tallies, around.lo, around.hi),
        around.older,
        reason="the commits in between cannot be judged",
    )


def _confirm(case: Case, tallies: dict[int, Tally]) -> Step:
    around = newest_transition(tallies, case.size)
    sure = _confidence(case, tallies, around.lo, around.hi)
    flying = Counter(case.in_flight)
    wanted: list[int] = []
    for at in (around.hi, around.lo):
        missing = case.settings.confirm - tallies[at].runs - flying[at]
        wanted.extend([at] * max(0, missing))
    if not wanted and case.settings.confirm > 1 and sure < case.settings.confirmed:
        wanted = [around.lo]
    if wanted or flying[around.hi] or flying[around.lo]:
        return Runs(Purpose.CONFIRM, tuple(wanted[: case.free]))
    return End(Ending.FOUND, around.lo, around.hi, sure, around.older)


def _confidence(case: Case, tallies: dict[int, Tally], lo: int, hi: int) -> float:
    """Return the probability that the first crash is in (lo, hi], allowing for a flaky crash."""
    kept = {at: tally for at, tally in tallies.items() if at >= lo or not tally.crashes}
    share = posterior(kept, case.size, case.prior).share
    return min(1.0, sum(share[lo + 1 : hi + 1]))


def _not_twice(case: Case, purpose: Purpose, wanted: list[int]) -> Runs:
    flying = set(case.in_flight)
    return Runs(purpose, tuple(at for at in wanted if at not in flying)[: case.free])
