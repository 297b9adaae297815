"""Go on inside a merge: which of the commits that it brought in is the culprit?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capdoctor.bisection.history.commit_range import merged_side
from capdoctor.bisection.line import whole_line
from capdoctor.bisection.search.case import End, Ending

if TYPE_CHECKING:
    from capdoctor.bisection.campaign import Campaign
    from capdoctor.bisection.refine import Refined


def descend(campaign: Campaign, end: End, refined: Refined) -> tuple[End, Refined]:
    """Return the culprit inside a merge, or what was found before when it is the merge itself.

    The merge is the culprit when its side branch is clean at the tip (two changes that do not go
    together), and also when the side's ends do not crash and start as they would have to.
    """
    while end.ending is Ending.FOUND:
        merge = refined.line.changed_at(end.hi)
        side = merged_side(campaign.mirror, merge)
        if side is None:
            break
        line = whole_line(side.commits, find_fix=refined.line.find_fix)
        campaign.listener.noted(
            f"{merge[:12]} is a merge: going on in the {line.size} commits that it brought in"
        )
        inner, inner_refined = campaign.search(line)
        if inner.ending not in (Ending.FOUND, Ending.UNCONFIRMED, Ending.RANGE):
            campaign.listener.noted(f"the crash comes with the merge {merge[:12]} itself")
            break
        end, refined = inner, inner_refined
    return end, refined
