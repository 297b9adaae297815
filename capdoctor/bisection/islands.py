"""The islands of a search as the answer shows them."""

from __future__ import annotations

from capdoctor.bisection.line import Line
from capdoctor.bisection.search.evidence import count, untestable
from capdoctor.bisection.search.islands import stretches
from capdoctor.bisection.votes import Vote, seen_on
from capdoctor.model import Island


def untestable_islands(line: Line, cast: tuple[Vote, ...]) -> tuple[Island, ...]:
    """Return the stretches of commits that could not be judged, oldest first, with the reason.

    ``length`` counts commits from the first to the last that was run; those between two with the
    same label are presumed to be like them.
    """
    tallies = count(seen_on(line, cast))
    skips = untestable(tallies)
    judged = frozenset(at for at, tally in tallies.items() if tally.runs)
    found = [
        Island(*_ends(line, one.first, one.last), one.length, _reason(line, cast, one.first))
        for one in stretches(skips, judged)
    ]
    return tuple(reversed(found)) if line.find_fix else tuple(found)


def _ends(line: Line, first: int, last: int) -> tuple[str, str]:
    a, b = line.runs_at(first), line.runs_at(last)
    return (b, a) if line.find_fix else (a, b)


def _reason(line: Line, cast: tuple[Vote, ...], at: int) -> str:
    for vote in cast:
        if line.position(vote.run.sha) == at:
            return f"{vote.judged.verdict}: {vote.judged.reason or vote.run.observation.reason}"
    return "not run"
