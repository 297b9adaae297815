"""What the runs so far say about each position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Mark(StrEnum):
    """What one run says: the crash in question, no crash, or nothing about it."""

    CRASH = "crash"
    CLEAN = "clean"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Seen:
    """One run. ``label`` tells apart why a run says nothing: a fingerprint, "unbuildable"..."""

    position: int
    mark: Mark
    label: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """The runs of one position, counted. A position with any vote is not untestable."""

    crashes: int = 0
    cleans: int = 0
    labels: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        """How many runs voted."""
        return self.crashes + self.cleans

    @property
    def untestable(self) -> bool:
        """Whether runs were made and none of them voted."""
        return not self.runs and bool(self.labels)

    @property
    def mixed(self) -> bool:
        """Whether the same commit crashed and did not crash: the crash is flaky."""
        return bool(self.crashes and self.cleans)


NO_RUNS = Tally()


def count(seen: Iterable[Seen]) -> dict[int, Tally]:
    """Return the tally of every position that was run."""
    tallies: dict[int, Tally] = {}
    for run in seen:
        before = tallies.get(run.position, NO_RUNS)
        tallies[run.position] = _add(before, run)
    return tallies


def _add(tally: Tally, run: Seen) -> Tally:
    if run.mark is Mark.CRASH:
        return replace(tally, crashes=tally.crashes + 1)
    if run.mark is Mark.CLEAN:
        return replace(tally, cleans=tally.cleans + 1)
    return replace(tally, labels=(*tally.labels, run.label))


def untestable(tallies: Mapping[int, Tally]) -> dict[int, str]:
    """Return the label of every position that could not be judged (its latest one)."""
    return {at: tally.labels[-1] for at, tally in tallies.items() if tally.untestable}
