"""What becomes known of the line once the range is short enough: inert commits and the prior."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.bisection.history.layout import Layout
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.history.tree_keys import live_commits
from capdoctor.bisection.journal.story import Story
from capdoctor.bisection.line import Line, without_inert
from capdoctor.bisection.prior.build import prior_for
from capdoctor.bisection.search.bracket import newest_transition
from capdoctor.bisection.search.evidence import count
from capdoctor.bisection.votes import seen_on, votes

# Half a millisecond a commit for inertness, one for the prior: at most a few seconds.
SHORT_ENOUGH = 4096


@dataclass(frozen=True, slots=True)
class Refined:
    """A line with what is known of its commits; ``looked`` once that has been found out."""

    line: Line
    prior: tuple[float, ...] | None = None
    looked: bool = False


def refine(mirror: Mirror, layout: Layout | None, story: Story, refined: Refined) -> Refined:
    """Return the line without inert commits and with a prior, as soon as that is affordable.

    The ends come first: the prior needs the traceback of the bad end.
    """
    line = refined.line
    seen = seen_on(line, votes(story))
    tallies = count(seen)
    proven = 0 in tallies and tallies.get(line.size) and tallies[line.size].crashes
    if refined.looked or not proven:
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


def ships(story: Story, layout: Layout | None) -> tuple[str, ...]:
    """Return the paths whose change can matter; none where every commit has to count."""
    return story.begin.request.paths or (layout.ships if layout else ())
