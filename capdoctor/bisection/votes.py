"""Which runs of a story count, and what they say about the positions of a line."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.bisection.journal.story import Run, Story
from capdoctor.bisection.line import Line
from capdoctor.bisection.observation import Saw
from capdoctor.bisection.search.evidence import Seen
from capdoctor.bisection.verdicts import Judged, Reference, judge, mark_of
from capdoctor.model import ProbeVerdict

CONTROL = "control"
REVERT = "revert"


@dataclass(frozen=True, slots=True)
class Vote:
    """A run with its verdict; ``counts`` is False for control runs and for suspect ones."""

    run: Run
    judged: Judged
    counts: bool


def votes(story: Story) -> tuple[Vote, ...]:
    """Return every run with its verdict."""
    suspects = suspicion(story.runs).uncounted
    reference, any_failure = story.reference, story.begin.request.any_failure
    return tuple(
        Vote(
            run,
            _judge(run, reference, any_failure=any_failure),
            run.purpose not in (CONTROL, REVERT) and index not in suspects,
        )
        for index, run in enumerate(story.runs)
    )


def _judge(run: Run, reference: Reference | None, *, any_failure: bool) -> Judged:
    return judge(run.observation, reference, any_failure=any_failure)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """``uncounted`` runs crashed right after a fault; ``worker`` is due for a control run."""

    uncounted: frozenset[int]
    worker: int | None


def suspicion(runs: tuple[Run, ...]) -> Suspicion:
    """Return which runs must not count (yet), and who has to prove that its device still works.

    A device that a fault has left broken fails whatever comes next. A crash right after a fault
    counts when the known-good end starts on the same worker afterwards; when that fails too, the
    crash never counts.
    """
    waiting: dict[int, set[int]] = {}
    void: set[int] = set()
    faulty: dict[int, bool] = {}
    due: dict[int, bool] = {}
    for index, run in enumerate(runs):
        seen, who = run.observation, run.worker
        if run.purpose == CONTROL:
            if seen.saw is not Saw.CLEAN:
                void |= waiting.get(who, set())
            waiting[who], faulty[who] = set(), False
            due[who] = seen.saw is not Saw.CLEAN
            continue
        crashed = seen.saw in (Saw.CRASH, Saw.HANG)
        if crashed and faulty.get(who):
            waiting.setdefault(who, set()).add(index)
            due[who] = True
        if seen.saw is not Saw.INFRA:
            faulty[who] = crashed and (seen.sticky or faulty.get(who, False))
    uncounted = void.union(*waiting.values())
    return Suspicion(frozenset(uncounted), next((who for who in due if due[who]), None))


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
            return f"after a fault the known-good end fails too ({seen.title or seen.reason})"
    streak = 0
    for vote in reversed(recent):
        if vote.judged.verdict is not ProbeVerdict.INFRA:
            break
        streak += 1
    return recent[-1].judged.reason or "the machine failed" if streak >= tries else None
