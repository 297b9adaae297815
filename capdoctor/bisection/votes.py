"""Which runs of a story count, and what they say about the positions of a line."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.bisection.device_control import HOW
from capdoctor.bisection.journal.story import Run, Story
from capdoctor.bisection.line import Line
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.search.evidence import Seen
from capdoctor.bisection.suspicion import CONTROL, REVERT, Suspicion, suspicion
from capdoctor.bisection.verdicts import Judged, Reference, judge, mark_of
from capdoctor.model import ProbeVerdict


@dataclass(frozen=True, slots=True)
class Vote:
    """A run with its verdict; ``counts`` is False for control runs and for those in ``doubt``."""

    run: Run
    judged: Judged
    counts: bool
    doubt: str = ""


def votes(story: Story) -> tuple[Vote, ...]:
    """Return every run with its verdict."""
    suspects = suspicion(story.runs)
    reference, any_failure = story.reference, story.begin.request.any_failure
    found = []
    for index, run in enumerate(story.runs):
        judged = judge(run.observation, reference, any_failure=any_failure)
        doubt = _doubt(index, run, reference, suspects)
        found.append(Vote(run, judged, not doubt and run.purpose not in (CONTROL, REVERT), doubt))
    return tuple(found)


def _doubt(index: int, run: Run, reference: Reference | None, suspects: Suspicion) -> str:
    """Say why a run does not count; the very crash that is looked for is no chance of a device."""
    if index in suspects.uncounted:
        return "right after a fault"
    seen = run.observation
    same = seen.saw is Saw.CRASH and reference and seen.signature == reference.signature
    doubtful = index in suspects.before_broken and not (same and seen.signature)
    return "its device passed no control after it" if doubtful else ""


def seen_on(line: Line, cast: tuple[Vote, ...]) -> tuple[Seen, ...]:
    """Return the votes as the search reads them: positions of the line and marks."""
    found: list[Seen] = []
    for vote in cast:
        mark, at = mark_of(vote.judged.verdict), line.position(vote.run.sha)
        if vote.counts and mark is not None and at is not None:
            found.append(Seen(at, mark, vote.judged.label))
    return tuple(found)


def starts_after(cast: tuple[Vote, ...], story: Story) -> tuple[Vote, ...]:
    """Return the votes since the bisection was last resumed."""
    return cast[story.resumed_at :]


def stuck(cast: tuple[Vote, ...], story: Story, tries: int = 3) -> str | None:
    """Say why the bisection has to pause, if it has to: the machine, not a commit, is at fault."""
    recent = starts_after(cast, story)
    if recent and recent[-1].run.observation.stop:
        return recent[-1].run.observation.reason
    if recent and recent[-1].run.purpose == CONTROL:
        seen = recent[-1].run.observation
        if seen.saw is not Saw.CLEAN:
            return _control_failed(seen)
    streak = 0
    recent = tuple(vote for vote in recent if vote.run.purpose != CONTROL)
    for vote in reversed(recent):
        if vote.judged.verdict is not ProbeVerdict.INFRA:
            break
        streak += 1
    return recent[-1].judged.reason or "the machine failed" if streak >= tries else None


def _control_failed(seen: Observation) -> str:
    if seen.provisioning == HOW:
        return f"after a fault the device fails by itself ({seen.reason})"
    return f"after a fault the known-good end fails too ({seen.title or seen.reason})"
