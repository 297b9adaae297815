"""What becomes known of the line once the range is short enough: inert commits and the prior."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.bisection.history.layout import Layout
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.history.tree_keys import live_commits
from capdoctor.bisection.journal.story import Story
from capdoctor.bisection.line import Line, whole_line, without_inert
from capdoctor.bisection.prior.build import prior_for
from capdoctor.bisection.search.bracket import newest_transition
from capdoctor.bisection.search.evidence import Mark, count
from capdoctor.bisection.verdicts import mark_of
from capdoctor.bisection.votes import Vote, seen_on, votes

# Half a millisecond a commit for inertness, one for the prior: at most a few seconds.
SHORT_ENOUGH = 4096


@dataclass(frozen=True, slots=True)
class Refined:
    """A line with what is known of its commits; ``looked`` once that has been found out.

    ``refuted``: commits that seemed inert had different verdicts, so every commit counts again.
    """

    line: Line
    prior: tuple[float, ...] | None = None
    looked: bool = False
    refuted: bool = False


def refine(mirror: Mirror, layout: Layout | None, story: Story, refined: Refined) -> Refined:
    """Return the line without inert commits and with a prior, as soon as that is affordable.

    The ends come first: the prior needs the traceback of the bad end.
    """
    line, cast = refined.line, votes(story)
    if refined.looked:
        wrong = not refined.refuted and _refuted(line, cast)
        every = whole_line(line.commits, find_fix=line.find_fix)
        return Refined(every, looked=True, refuted=True) if wrong else refined
    seen = seen_on(line, cast)
    tallies = count(seen)
    proven = 0 in tallies and tallies.get(line.size) and tallies[line.size].crashes
    if not proven:
        return refined
    around = newest_transition(tallies, line.size)
    if around.hi - around.lo > SHORT_ENOUGH:
        return refined
    older, newer = line.span(around.lo, around.hi)
    paths = ships(story, layout)
    if paths:
        live = live_commits(mirror, line.commits[older], line.commits[newer], paths)
        line = without_inert(line, live, older, newer)
    return Refined(line, prior_for(mirror, layout, story, line, (older, newer)), looked=True)


def _refuted(line: Line, cast: tuple[Vote, ...]) -> bool:
    """Say whether one commit of a class crashed and another one did not."""
    sides: dict[int, dict[Mark, set[str]]] = {}
    for vote in cast:
        mark, at = mark_of(vote.judged.verdict), line.position(vote.run.sha)
        if vote.counts and mark is not None and at is not None:
            sides.setdefault(at, {}).setdefault(mark, set()).add(vote.run.sha)
    return any(
        Mark.CRASH in side and Mark.CLEAN in side and side[Mark.CRASH] != side[Mark.CLEAN]
        for side in sides.values()
    )


def ships(story: Story, layout: Layout | None) -> tuple[str, ...]:
    """Return the paths whose change can matter; none where every commit has to count."""
    return story.begin.request.paths or (layout.ships if layout else ())
