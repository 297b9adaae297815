"""What a fault makes of the runs around it, and who has to prove that its device still works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capdoctor.bisection.observation import Saw

if TYPE_CHECKING:
    from capdoctor.bisection.journal.story import Run

# Purposes beside those of the search: neither votes.
CONTROL = "control"
REVERT = "revert"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """``uncounted`` runs crashed right after a fault; workers in ``due`` owe a control run.

    ``before_broken`` are the runs after which a control failed: whose fault that is nobody knows.
    """

    uncounted: frozenset[int]
    due: tuple[int, ...] = ()
    before_broken: frozenset[int] = frozenset()

    @property
    def worker(self) -> int | None:
        """The worker whose control comes first."""
        return self.due[0] if self.due else None

    @property
    def doubtful(self) -> frozenset[int]:
        """The runs that are no first reproduction of anything."""
        return self.uncounted | self.before_broken


def suspicion(runs: tuple[Run, ...], *, at_once: bool = False) -> Suspicion:
    """Return which runs must not count (yet), and who has to prove that its device still works.

    A device that a fault has left broken fails whatever comes next. With ``at_once`` there is a
    cheap control, so it is due right after a fault, before the next commit is run. Otherwise it is
    due when a crash follows on a fault: that crash counts when the known-good end starts on the
    same worker afterwards; when that fails too, the crash never counts.
    """
    waiting: dict[int, set[int]] = {}
    void: set[int] = set()
    faulty: dict[int, bool] = {}
    due: dict[int, bool] = {}
    last: dict[int, int] = {}
    broken: set[int] = set()
    for index, run in enumerate(runs):
        seen, who = run.observation, run.worker
        if run.purpose == CONTROL:
            if seen.saw is not Saw.CLEAN:
                void |= waiting.get(who, set())
                broken |= {last[who]} if who in last else set()
            waiting[who], faulty[who] = set(), False
            due[who] = seen.saw is not Saw.CLEAN
            continue
        last[who] = index
        crashed = seen.saw in (Saw.CRASH, Saw.HANG)
        if crashed and faulty.get(who):
            waiting.setdefault(who, set()).add(index)
            due[who] = True
        if at_once and (seen.suspect or (crashed and seen.sticky)):
            due[who] = True
        if seen.saw is not Saw.INFRA:
            faulty[who] = crashed and (seen.sticky or faulty.get(who, False))
    uncounted = void.union(*waiting.values())
    owing = tuple(who for who in due if due[who])
    return Suspicion(frozenset(uncounted), owing, frozenset(broken))
