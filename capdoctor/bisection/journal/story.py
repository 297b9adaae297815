"""The journal folded into what a bisection knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from capdoctor.bisection.journal.codec import decode, encode
from capdoctor.bisection.observation import Observation
from capdoctor.bisection.request import BisectRequest
from capdoctor.bisection.suspicion import CONTROL, suspicion
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
    def good_end(self) -> str:
        """The end that does not crash."""
        return self.begin.newer if self.begin.request.find_fix else self.begin.older

    @property
    def reference(self) -> Reference | None:
        """The crash that is looked for: as given, else the first one at the bad end."""
        if self.begin.reference is not None:
            return self.begin.reference
        suspects = suspicion(self.runs)
        at_bad_end = {
            index: reference
            for index, run in enumerate(self.runs)
            if run.sha == self.bad_end and (reference := first_crash(run.observation))
        }
        clear = (at_bad_end[index] for index in at_bad_end if index not in suspects.doubtful)
        breaking = suspects.before_broken - suspects.uncounted
        faults = [
            reference
            for index, reference in at_bad_end.items()
            if index in breaking and self.runs[index].observation.sticky and reference.signature
        ]
        return next(clear, None) or _twice(faults)

    @property
    def elapsed(self) -> float:
        """Return the seconds spent so far."""
        return max((run.elapsed for run in self.runs), default=0.0)


def _twice(faults: Sequence[Reference]) -> Reference | None:
    """Return the fault that came twice, each time leaving the device broken.

    Once may be chance. The second time it came on a device that a control had just passed, or on
    another one.
    """
    known = [one.signature for one in faults]
    return next((one for at, one in enumerate(faults) if one.signature in known[:at]), None)


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
    """Take back verdicts, and with each the controls that came after it on its worker.

    A control alone is no verdict, and left behind it would cast doubt on another run.
    """
    undone = {at for at, run in enumerate(runs) if run.sha == sha and run.purpose != CONTROL}
    if sha is None:
        undone = {max((at for at, run in enumerate(runs) if run.purpose != CONTROL), default=-1)}
    kept: list[Run] = []
    bare: set[int] = set()
    for at, run in enumerate(runs):
        if at in undone:
            bare.add(run.worker)
        elif run.purpose != CONTROL:
            bare.discard(run.worker)
            kept.append(run)
        elif run.worker not in bare:
            kept.append(run)
    return tuple(kept)


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise CannotDo("the journal holds something that capdoctor did not write")
    return value
