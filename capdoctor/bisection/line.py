"""The list that is searched: classes of commits that behave alike, oldest crash-free end first.

Inert commits ship what their parent ships, so they share its class and its verdict. In a search
for a fix the list is reversed: the crashing end is the last position in both cases.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Line:
    """``commits`` from old to new; ``firsts`` the index of the first commit of every class."""

    commits: Sequence[str]
    firsts: Sequence[int]
    find_fix: bool = False

    @property
    def size(self) -> int:
        """The last position; there are ``size`` candidates."""
        return len(self.firsts) - 1

    @cached_property
    def _places(self) -> dict[str, int]:
        return {sha: index for index, sha in enumerate(self.commits)}

    def position(self, sha: str) -> int | None:
        """Return the position of a commit, None if it is not in the range."""
        index = self._places.get(sha)
        if index is None:
            return None
        return self._turn(bisect_right(self.firsts, index) - 1)

    def runs_at(self, position: int) -> str:
        """Return the commit that is run for a position: an end itself, else its oldest commit."""
        number = self._turn(position)
        if number == self.size:
            return self.commits[-1]
        return self.commits[self.firsts[number]]

    def before_change(self, position: int) -> str:
        """Return the parent of ``changed_at(position)``; it may be an inert commit."""
        return self.commits[self._places[self.changed_at(position)] - 1]

    def changed_at(self, position: int) -> str:
        """Return the commit that changed what a position ships: the candidate it stands for."""
        number = self._turn(position)
        return self.commits[self.firsts[number + 1 if self.find_fix else number]]

    def candidates(self, lo: int, hi: int) -> tuple[str, ...]:
        """Return the candidates of the window (lo, hi], oldest first."""
        found = [self.changed_at(position) for position in range(lo + 1, hi + 1)]
        return tuple(reversed(found)) if self.find_fix else tuple(found)

    def span(self, lo: int, hi: int) -> tuple[int, int]:
        """Return the indices of the commits at the two ends of a window, the older one first."""
        a, b = sorted((self._turn(lo), self._turn(hi)))
        return self.firsts[a], self.firsts[b]

    def _turn(self, position: int) -> int:
        return self.size - position if self.find_fix else position


def whole_line(commits: Sequence[str], *, find_fix: bool = False) -> Line:
    """Return the line in which every commit is a class of its own."""
    return Line(commits, range(len(commits)), find_fix)


def without_inert(line: Line, live: frozenset[str], older: int, newer: int) -> Line:
    """Return the line with the inert commits between two indices joined to their parents."""
    firsts = [
        index for index in line.firsts if not older < index <= newer or line.commits[index] in live
    ]
    return Line(line.commits, firsts, line.find_fix)
