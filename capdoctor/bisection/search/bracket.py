"""The newest clean position and the oldest crashing one after it, and what contradicts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from capdoctor.bisection.search.evidence import Tally


@dataclass(frozen=True, slots=True)
class Bracket:
    """The first crash lies in (lo, hi]; ``older`` are further changes of verdict before ``lo``.

    Each pair of ``older`` is two neighbouring judged positions whose verdicts differ.
    """

    lo: int
    hi: int
    older: tuple[tuple[int, int], ...] = ()


def newest_transition(tallies: Mapping[int, Tally], size: int) -> Bracket:
    """Return the newest change from clean to crashing, every other change listed beside it.

    A position that crashed even once counts as crashing: a matched signature has no false alarms.
    """
    crashing = {at for at, tally in tallies.items() if tally.crashes} | {size}
    clean = {
        at for at, tally in tallies.items() if tally.cleans and not tally.crashes and at < size
    }
    lo = max(clean, default=0)
    hi = min(at for at in crashing if at > lo)
    judged = sorted(crashing | clean)
    older = tuple(
        (a, b) for a, b in pairwise(judged) if b <= lo and (a in crashing) != (b in crashing)
    )
    return Bracket(lo, hi, older)


def contradictions(tallies: Mapping[int, Tally]) -> tuple[int, ...]:
    """Return the clean positions that are newer than a crashing one."""
    oldest_crash = min((at for at, t in tallies.items() if t.crashes), default=None)
    if oldest_crash is None:
        return ()
    return tuple(
        sorted(at for at, tally in tallies.items() if _only_clean(tally) and at > oldest_crash)
    )


def _only_clean(tally: Tally) -> bool:
    return bool(tally.cleans) and not tally.crashes
