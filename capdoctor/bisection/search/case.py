"""What the search is told, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from capdoctor.bisection.search.evidence import Seen


@dataclass(frozen=True, slots=True)
class Settings:
    """How sure one wants to be.

    ``confirm`` runs each at the culprit and its parent, and more until ``confirmed`` is reached
    when few runs have shown that the crash happens every time; ``end_tries`` runs of the
    crashing end before "it does not crash"; ``skip_tries`` runs of a commit before it counts as
    untestable. ``known_flaky``: the crash is known not to happen every time. For flaky crashes:
    ``measure`` runs of the crashing end give the rate, the search ends at ``certainty``, a
    confirmed culprit is wrong with at most ``risk``, changing the commit costs ``switch_cost``
    runs, and after ``most_runs`` runs the likeliest candidates are the answer.
    """

    confirm: int = 3
    confirmed: float = 0.99
    end_tries: int = 5
    skip_tries: int = 1
    measure: int = 4
    certainty: float = 0.95
    risk: float = 1e-4
    known_flaky: bool = False
    switch_cost: float = 1.0
    most_runs: int = 2000


@dataclass(frozen=True, slots=True)
class Case:
    """A list of positions 0..size, what was seen, and what is running now.

    ``prior[c - 1]`` weighs candidate c; None: all alike. ``in_flight`` may hold a position more
    than once; ``free`` is how many workers wait for a run.
    """

    size: int
    seen: tuple[Seen, ...] = ()
    prior: tuple[float, ...] | None = None
    settings: Settings = field(default_factory=Settings)
    in_flight: tuple[int, ...] = ()
    free: int = 1


class Purpose(StrEnum):
    """Why a run is made."""

    BAD_END = "bad end"
    GOOD_END = "good end"
    SEARCH = "search"
    RECHECK = "recheck"
    CONFIRM = "confirm"


@dataclass(frozen=True, slots=True)
class Runs:
    """Run these positions next, at most ``free`` of them; empty: wait for those in flight."""

    purpose: Purpose
    positions: tuple[int, ...] = ()


class Ending(StrEnum):
    """The ways a search can end."""

    FOUND = "found"
    UNCONFIRMED = "unconfirmed"
    RANGE = "range"
    CLEAN_END_CRASHES = "clean end crashes"
    BAD_END_CLEAN = "bad end does not crash"
    END_UNTESTABLE = "an end cannot be judged"


@dataclass(frozen=True, slots=True)
class End:
    """The search is over: the first crash is in (lo, hi], with this confidence."""

    ending: Ending
    lo: int
    hi: int
    confidence: float
    older: tuple[tuple[int, int], ...] = ()
    flaky: bool = False
    rate: float = 1.0
    reason: str = ""


Step = Runs | End
