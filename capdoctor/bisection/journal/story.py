"""The journal folded into what a bisection knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from capdoctor.bisection.journal.codec import decode, encode
from capdoctor.bisection.observation import Observation
from capdoctor.bisection.request import BisectRequest
from capdoctor.bisection.suspicion import suspicion
from capdoctor.bisection.verdicts import Reference, first_crash
from capdoctor.errors import CannotDo
from capdoctor.model import Json

VERSION = 1


@dataclass(frozen=True, slots=True)
class Begin:
    """What was asked and the range it came to; ``notes`` are said in every answer.

    ``reference`` is the crash that the user gave; None: the first one at the bad end counts.
    """

    request: BisectRequest
    source: str
    older: str
    newer: str
    notes: tuple[str, ...] = ()
    reference: Reference | None = None
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Run:
    """One run. ``elapsed`` is the time spent on the bisection when it ended, pauses left out.

    ``purpose`` is a value of Purpose, ``control`` for a run of the known-good end after a fault,
    or ``revert`` for the check with the culprit reverted.
    """

    sha: str
    purpose: str
    observation: Observation
    elapsed: float = 0.0
    worker: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """All that counts. ``resumed_at`` is how many runs there were when it was last resumed."""

    begin: Begin
    runs: tuple[Run, ...] = ()
    resumed_at: int = 0

    @property
    def bad_end(self) -> str:
        """The end that crashes: the newer one, the older one in a search for a fix."""
        return self.begin.older if self.begin.request.find_fix else self.begin.newer

    @property
    def reference(self) -> Reference | None:
        """The crash that is looked for: as given, else the first one at the bad end."""
        if self.begin.reference is not None:
            return self.begin.reference
        doubtful = suspicion(self.runs).doubtful
        found = (
            first_crash(run.observation)
            for index, run in enumerate(self.runs)
            if run.sha == self.bad_end and index not in doubtful
        )
        return next((reference for reference in found if reference), None)

    @property
    def elapsed(self) -> float:
        """Return the seconds spent so far."""
        return max((run.elapsed for run in self.runs), default=0.0)


def begin_event(begin: Begin) -> dict[str, Json]:
    """Return the first line of a journal."""
    return {"event": "begin", "begin": encode(begin)}


def run_event(run: Run) -> dict[str, Json]:
    """Return the line of a run."""
    return {"event": "run", "run": encode(run)}


def undo_event(sha: str | None) -> dict[str, Json]:
    """Return the line that takes back the last run, or all runs of a commit."""
    return {"event": "undo", "sha": sha}


def resume_event() -> dict[str, Json]:
    """Return the line that ends a pause: faults before it are given another try."""
    return {"event": "resume"}


def fold(events: Iterable[Mapping[str, Json]]) -> Story:
    """Return the story that the events tell; an event of an unknown kind is passed over.

    Raises:
        CannotDo: the first event does not begin a bisection, or a newer capdoctor wrote it.
    """
    story: Story | None = None
    for event in events:
        if event.get("event") == "begin":
            story = Story(_begin(event))
        elif story is None:
            break
        else:
            story = _after(story, event)
    if story is None:
        raise CannotDo("the journal does not begin with a bisection", "start a new one")
    return story


def _begin(event: Mapping[str, Json]) -> Begin:
    begin = decode(Begin, _object(event["begin"]))
    if begin.version > VERSION:
        raise CannotDo("a newer capdoctor wrote this journal", "resume it with that version")
    return begin


def _after(story: Story, event: Mapping[str, Json]) -> Story:
    kind, runs, resumed_at = event.get("event"), story.runs, story.resumed_at
    if kind == "run":
        runs = (*runs, decode(Run, _object(event["run"])))
    elif kind == "undo":
        runs = _without(runs, event.get("sha"))
        resumed_at = min(resumed_at, len(runs))
    elif kind == "resume":
        resumed_at = len(runs)
    return Story(story.begin, runs, resumed_at)


def _without(runs: tuple[Run, ...], sha: Json) -> tuple[Run, ...]:
    return runs[:-1] if sha is None else tuple(run for run in runs if run.sha != sha)


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise CannotDo("the journal holds something that capdoctor did not write")
    return value
