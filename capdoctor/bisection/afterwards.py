"""What can be done with a bisection's journal: look, take back, hand over to git."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capdoctor.bisection.answer import as_probe, resume_command
from capdoctor.bisection.journal.git_replay import replay_lines
from capdoctor.bisection.journal.journal import Journal
from capdoctor.bisection.journal.lock import locked
from capdoctor.bisection.journal.story import Begin, Story, fold, undo_event
from capdoctor.bisection.journal.work_folder import JOURNAL, find_work_folder
from capdoctor.bisection.suspicion import CONTROL
from capdoctor.bisection.votes import votes
from capdoctor.errors import CannotDo
from capdoctor.model import ProbeRun


@dataclass(frozen=True, slots=True)
class Status:
    """What a bisection has done so far."""

    work_dir: Path
    begin: Begin
    runs: int
    seconds: float
    last: ProbeRun | None
    resume_command: str


def undo(work_dir: Path | None = None, sha: str | None = None) -> tuple[str, ...]:
    """Take back the last run, or every run of a commit; returns the commits taken back.

    Raises:
        CannotDo: there is nothing to take back.
    """
    work = find_work_folder(work_dir)
    with locked(work):
        journal = Journal(work / JOURNAL)
        verdicts = _verdicts(fold(journal.events()))
        full = _full_sha(verdicts, sha) if sha else None
        if not verdicts:
            raise CannotDo("there is no verdict to take back")
        journal.append(undo_event(full))
    return tuple(one for one in verdicts if one == full) if full else verdicts[-1:]


def _verdicts(story: Story) -> tuple[str, ...]:
    """Return the commit of every verdict; a look at a device or another control is none."""
    return tuple(run.sha for run in story.runs if run.purpose != CONTROL)


def _full_sha(shas: tuple[str, ...], start: str) -> str:
    found = {sha for sha in shas if sha.startswith(start)}
    if len(found) != 1:
        raise CannotDo(f"{start} names {len(found) or 'none'} of the commits that were run")
    return found.pop()


def status(work_dir: Path | None = None) -> Status:
    """Say what a bisection has done; does not need the lock."""
    work = find_work_folder(work_dir)
    story = fold(Journal(work / JOURNAL).events())
    cast = votes(story)
    return Status(
        work,
        story.begin,
        len(story.runs),
        story.elapsed,
        as_probe(cast[-1]) if cast else None,
        resume_command(work),
    )


def replay_log(work_dir: Path | None = None) -> str:
    """Return the verdicts as a file for ``git bisect replay``."""
    work = find_work_folder(work_dir)
    return replay_lines(fold(Journal(work / JOURNAL).events()))
