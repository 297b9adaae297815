"""The range in one line of text."""

from __future__ import annotations

from collections.abc import Iterable

from capdoctor.bisection.search.bracket import newest_transition
from capdoctor.bisection.search.evidence import Seen, Tally, count, untestable
from capdoctor.bisection.search.islands import stretches

GOOD, BAD, OTHER, UNTESTABLE, PRESUMED, CANDIDATE, SETTLED = "+", "#", "o", "x", "~", "?", "."
LEGEND = (
    f"{GOOD} good  {BAD} bad  {OTHER} other crash  {UNTESTABLE} untestable  {PRESUMED} presumed "
    f"so  {CANDIDATE} candidate  {SETTLED} settled"
)
# In a cell that stands for several commits the most telling one shows.
_RANK = {mark: rank for rank, mark in enumerate((SETTLED, PRESUMED, CANDIDATE, OTHER, UNTESTABLE))}
_RANK |= {GOOD: 8, BAD: 9}
_UNBUILDABLE = ("unbuildable",)


def picture(size: int, seen: Iterable[Seen], width: int = 60) -> str:
    """Return the positions 0..size, oldest left, in at most ``width`` characters.

    Characters are those of ``LEGEND``; in a search for a fix the caller reverses the line.
    """
    tallies = count(seen)
    around = newest_transition(tallies, size)
    skips = untestable(tallies)
    judged = frozenset(at for at, tally in tallies.items() if tally.runs)
    presumed = {
        at for one in stretches(skips, judged) for at in range(one.first, one.last + 1)
    } - set(skips)
    cells = min(width, size + 1)
    line = [SETTLED] * cells
    for at in range(size + 1):
        mark = _mark(at, tallies, skips)
        if mark is None:
            inside = around.lo < at <= around.hi
            mark = (PRESUMED if at in presumed else CANDIDATE) if inside else SETTLED
        cell = at * cells // (size + 1)
        if _RANK[mark] > _RANK[line[cell]]:
            line[cell] = mark
    return "".join(line)


def _mark(at: int, tallies: dict[int, Tally], skips: dict[int, str]) -> str | None:
    tally = tallies.get(at)
    if tally is None:
        return None
    if at in skips:
        return UNTESTABLE if skips[at].startswith(_UNBUILDABLE) else OTHER
    return BAD if tally.crashes else GOOD
