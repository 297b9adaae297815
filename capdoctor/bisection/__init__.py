"""Find the commit that introduced a crash, or say honestly how far it could be narrowed.

``bisect`` starts, ``resume`` goes on; ``undo``, ``status`` and ``replay_log`` work on the journal;
``judge_checkout`` judges what is checked out right now; ``markdown`` makes the report of a result.
"""

from __future__ import annotations

from capdoctor.bisection.afterwards import Status, replay_log, status, undo
from capdoctor.bisection.checkout import CheckoutVerdict, GitExit, judge_checkout
from capdoctor.bisection.markdown import markdown
from capdoctor.bisection.picture import LEGEND
from capdoctor.bisection.progress import BisectListener, Planned, Silent, Tested, Testing
from capdoctor.bisection.request import BisectRequest
from capdoctor.bisection.workflow import bisect, resume

__all__ = [
    "LEGEND",
    "BisectListener",
    "BisectRequest",
    "CheckoutVerdict",
    "GitExit",
    "Planned",
    "Silent",
    "Status",
    "Tested",
    "Testing",
    "bisect",
    "judge_checkout",
    "markdown",
    "replay_log",
    "resume",
    "status",
    "undo",
]
