"""Controls that were still owed when a bisection stopped."""

from __future__ import annotations

from capdoctor.bisection.device_control import HOW
from capdoctor.bisection.journal.story import Run, Story
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.suspicion import CONTROL, suspicion

_REASON = "the bisection stopped before the device was asked"


def nobody_asked(story: Story) -> tuple[Run, ...]:
    """Return a failed control for each worker whose device nobody asked after its last fault.

    Since then the machine may have been reset: that the device works now does not say that it did
    when the run was made. So the run is no evidence, and its commit is run again.
    """
    return tuple(
        Run(
            story.begin.older,
            CONTROL,
            Observation(Saw.INFRA, title=_REASON, provisioning=HOW, reason=_REASON),
            story.elapsed,
            worker,
        )
        for worker in suspicion(story.runs, at_once=True).due
        if _last(story, worker).purpose != CONTROL
    )


def _last(story: Story, worker: int) -> Run:
    return next(run for run in reversed(story.runs) if run.worker == worker)
