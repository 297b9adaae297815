"""Islands: stretches of commits that cannot be judged, searched at their edges.

A commit that cannot be judged rarely stands alone. Two of them with the same label are presumed
to belong to one island, so that finding its two edges costs a logarithm of its length instead of
a walk; whatever was only presumed is looked into at the end, largest gap first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from capdoctor.bisection.search.window import Window, surprise

# How fast the chance of a testable commit grows with the distance from an untestable one: at 16
# commits it is one half. Simulated against 8 to 128 commits of island in 512.
HALF_DISTANCE = 16
# An island is left alone once no unprobed gap in it is longer than this part of its length: about
# four probes for one long island. Where commits with the same label were seen in several places,
# with testable ones between, presuming is less safe and the gaps are made smaller.
ONE_ISLAND_GAP = 1 / 4
SCATTERED_GAP = 1 / 16


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions first..last that are, or are presumed to be, untestable for one reason."""

    first: int
    last: int
    label: str

    @property
    def length(self) -> int:
        """How many positions it covers."""
        return self.last - self.first + 1


def stretches(skips: Mapping[int, str], judged: frozenset[int] = frozenset()) -> list[Stretch]:
    """Return the islands, oldest first: neighbours with one label and no judged one between."""
    found: list[Stretch] = []
    verdicts = sorted(judged)
    for at in sorted(skips):
        last = found[-1] if found else None
        if last and last.label == skips[at] and not _any_between(verdicts, last.last, at):
            found[-1] = Stretch(last.first, at, last.label)
        else:
            found.append(Stretch(at, at, skips[at]))
    return found


def scattered_labels(skips: Mapping[int, str], judged: frozenset[int]) -> frozenset[str]:
    """Return the labels that were met in several places with a judged commit between them."""
    labels = [island.label for island in stretches(skips, judged)]
    return frozenset(label for label in labels if labels.count(label) > 1)


def _any_between(ordered: list[int], after: int, before: int) -> bool:
    index = bisect_left(ordered, after)
    return index < len(ordered) and ordered[index] < before


def edge_cut(view: Window) -> int | None:
    """Return the cut that promises most beside the islands, or None when none is left open.

    The promise is the chance that the commit can be judged times the bits its verdict gives.
    """
    islands = stretches(view.skips)
    below = view.mass_below()
    middle = (view.lo + view.hi) / 2
    best: tuple[float, float] | None = None
    choice: int | None = None
    for at in _open_cuts(view, islands):
        promise = _chance(at, islands) * surprise(below[at - view.lo])
        rank = (promise, -abs(at - middle))
        if best is None or rank > best:
            best, choice = rank, at
    return choice


def _open_cuts(view: Window, islands: list[Stretch]) -> list[int]:
    cuts: list[int] = []
    start = view.lo + 1
    for island in islands:
        cuts.extend(range(start, island.first))
        start = max(start, island.last + 1)
    cuts.extend(range(start, view.hi))
    return cuts


def _chance(at: int, islands: list[Stretch]) -> float:
    index = bisect_left(islands, at, key=lambda island: island.first)
    near = [abs(at - islands[index].first)] if index < len(islands) else []
    if index:
        near.append(abs(at - islands[index - 1].last))
    return 1 - 1 / (1 + min(near) / HALF_DISTANCE)


def inner_cut(view: Window) -> int | None:
    """Return the middle of the largest gap that was only presumed untestable, or None.

    None also when every gap is short against its island: then a range is the honest answer.
    """
    gaps = [
        (b - a - 1, -a, (a + b) // 2)
        for island in stretches(view.skips)
        for a, b in pairwise(sorted(at for at in view.skips if island.first <= at <= island.last))
        if b - a - 1 > _gap_left_alone(view, island)
    ]
    return max(gaps)[2] if gaps else None


def _gap_left_alone(view: Window, island: Stretch) -> int:
    share = SCATTERED_GAP if island.label in view.scattered else ONE_ISLAND_GAP
    return int(island.length * share)
