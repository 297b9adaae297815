"""A result that would not hold is refused before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from capdoctor.errors import CannotDo
from capdoctor.model import FixSite, FixStatus
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.contract import Files, Reading
from capdoctor.vendored_fixes.proving import proven_change

FIX = find_fix("sparse-mla")


@dataclass
class Room:
    """A room that says and does what a test wants."""

    rewrites: list[dict[str, bytes]]
    status: FixStatus = FixStatus.FIXED
    sites: tuple[FixSite, ...] = field(default=())

    def read(self, files: Files) -> Reading:
        del files
        return Reading(self.status, self.sites)

    def rewrite(self, files: Files) -> dict[str, bytes]:
        del files
        return self.rewrites.pop(0)


def test_what_holds_is_given() -> None:
    assert proven_change(FIX, Room([{"a.py": b"x = 1\n"}, {}]), {}) == {"a.py": b"x = 1\n"}


def test_a_result_that_does_not_compile_is_refused() -> None:
    with pytest.raises(CannotDo, match=r"a\.py would not compile"):
        proven_change(FIX, Room([{"a.py": b"return = 1\n"}]), {})


def test_a_result_that_is_not_fixed_is_refused_with_the_open_site() -> None:
    site = FixSite("a.py", "f", FixStatus.VULNERABLE, "line 3 waits")
    room = Room([{"a.py": b""}], FixStatus.PARTLY_FIXED, (site,))
    with pytest.raises(CannotDo, match=r"would be partly_fixed \(a\.py line 3 waits\)"):
        proven_change(FIX, room, {})


def test_a_change_that_a_second_run_would_change_again_is_refused() -> None:
    with pytest.raises(CannotDo, match=r"a second run would change a\.py again"):
        proven_change(FIX, Room([{"a.py": b"1\n"}, {"a.py": b"2\n"}]), {})
