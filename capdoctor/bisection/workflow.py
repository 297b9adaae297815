"""A bisection from the request to the answer, and back from its journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from capdoctor.bisection.answer import result_of, resume_command
from capdoctor.bisection.campaign import Campaign
from capdoctor.bisection.descend import descend
from capdoctor.bisection.device_control import DeviceCheck, device_check_for
from capdoctor.bisection.history.commit_range import commit_range
from capdoctor.bisection.history.layout import layout_of
from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.history.paths import check_paths, paths_inside
from capdoctor.bisection.history.revisions import resolve
from capdoctor.bisection.journal.disk import writing
from capdoctor.bisection.journal.journal import Journal
from capdoctor.bisection.journal.lock import locked
from capdoctor.bisection.journal.story import (
    Begin,
    Story,
    begin_event,
    fold,
    resume_event,
    run_event,
)
from capdoctor.bisection.journal.unasked import nobody_asked
from capdoctor.bisection.journal.work_folder import JOURNAL, find_work_folder, new_work_folder
from capdoctor.bisection.line import Line, whole_line
from capdoctor.bisection.probes.choose import probe_for
from capdoctor.bisection.probes.engine import model_in_repository
from capdoctor.bisection.probes.probe import Probe
from capdoctor.bisection.probes.strays import end_strays
from capdoctor.bisection.progress import BisectListener, Planned, Silent
from capdoctor.bisection.provisioning.worktrees import Worktrees, remove_tree
from capdoctor.bisection.reference import read_reference
from capdoctor.bisection.repositories import find_repository
from capdoctor.bisection.request import BisectRequest
from capdoctor.bisection.revert import revert_check
from capdoctor.bisection.search.case import Ending
from capdoctor.errors import CannotDo, CapdoctorError, Interrupted, UsageError
from capdoctor.model import BisectResult


@dataclass(frozen=True, slots=True)
class Tools:
    """What a bisection works with: what judges, what proves a device, who is told."""

    probe: Probe
    device_check: DeviceCheck | None
    listener: BisectListener


def bisect(
    request: BisectRequest,
    probe: Probe | None = None,
    *,
    listener: BisectListener | None = None,
    work_dir: Path | None = None,
    device_check: DeviceCheck | None = None,
) -> BisectResult:
    """Find the commit that introduced a crash, or say honestly how far it could be narrowed.

    ``probe`` and ``device_check`` default to what the request names; ``work_dir`` to a new folder
    under the user's state folder. Every error after the first run carries the command that resumes.

    Raises:
        UsageError: the request contradicts itself.
        CannotDo: it could not be started, or is paused because the machine failed.
        Interrupted: the user stopped it.
    """
    _check_gpus(request)
    python = request.engine.python if request.engine else None
    source = find_repository(request.repo, python)
    request = _anywhere(request, source)
    chosen = probe or probe_for(request)
    work = (
        Path.cwd() / work_dir.expanduser()
        if work_dir
        else new_work_folder(f"{source.name}-{request.good}-{request.bad}")
    )
    with writing(work):
        work.mkdir(parents=True, exist_ok=True)
    if (work / JOURNAL).exists() and Journal(work / JOURNAL).events():
        raise CannotDo(f"{work} holds a bisection already", resume_command(work))
    with locked(work):
        with _no_litter(work, ours=work_dir is None):
            mirror = open_mirror(source, work / "repository.git")
            check = device_check or device_check_for(request)
            begin = _begin(request, mirror, chosen)
        journal = Journal(work / JOURNAL)
        journal.append(begin_event(begin))
        story = Story(begin)
        return _go_on(story, journal, mirror, Tools(chosen, check, listener or Silent()))


def resume(
    work_dir: Path | None = None,
    probe: Probe | None = None,
    *,
    listener: BisectListener | None = None,
    device_check: DeviceCheck | None = None,
) -> BisectResult:
    """Go on with a bisection where its journal ends; by default the latest one.

    Raises:
        CannotDo: there is none, another process has it, or the machine still fails.
        Interrupted: the user stopped it again.
    """
    work = find_work_folder(work_dir)
    with locked(work):
        journal = Journal(work / JOURNAL)
        before = fold(journal.events())
        request = before.begin.request
        mirror = open_mirror(Path(before.begin.source), work / "repository.git")
        chosen = probe or probe_for(request)
        check = device_check or device_check_for(request)
        for run in nobody_asked(before) if check else ():
            journal.append(run_event(run))
        journal.append(resume_event())
        story = fold(journal.events())
        return _go_on(story, journal, mirror, Tools(chosen, check, listener or Silent()))


def _check_gpus(request: BisectRequest) -> None:
    """Refuse devices that do not go round: a worker without any of its own takes the others'."""
    sets, workers = len(request.gpus), request.workers
    if sets and sets != workers:
        raise UsageError(
            f"{workers} worker(s) cannot share out {sets} set(s) of GPUs",
            "give --gpus once for each worker (--workers 2 --gpus 0 --gpus 1); a set may hold "
            "several (--gpus 0,1)",
        )


@contextmanager
def _no_litter(work: Path, *, ours: bool) -> Iterator[None]:
    """Remove the folder again when the bisection cannot even begin."""
    try:
        yield
    except BaseException:
        if ours:
            remove_tree(work)
        raise


def _anywhere(request: BisectRequest, source: Path) -> BisectRequest:
    """Return the request without paths that depend on the folder it was made in."""
    if request.engine is None:
        return request
    spec = model_in_repository(request.engine, source)
    python = spec.python
    if python is not None and len(python.parts) > 1:
        python = Path.cwd() / python.expanduser()
    return replace(request, engine=replace(spec, python=python))


def _begin(request: BisectRequest, mirror: Mirror, probe: Probe) -> Begin:
    newer = resolve(mirror, request.newer)
    older = resolve(mirror, request.older, tip=newer.sha)
    found = commit_range(mirror, older.sha, newer.sha)
    request = replace(request, paths=paths_inside(mirror, request.paths))
    check_paths(mirror, found, request.paths)
    named = [
        f"{text} is {one.sha[:12]} ({one.found_as})"
        for text, one in ((request.older, older), (request.newer, newer))
        if one.found_as != text
    ]
    probe.check(mirror, found.commits[-1])
    reference = read_reference(request.reference) if request.reference else None
    commits = found.commits
    notes = (*named, *found.notes)
    source = str(mirror.source)
    return Begin(request, source, commits[0], commits[-1], notes, reference)


def _go_on(story: Story, journal: Journal, mirror: Mirror, tools: Tools) -> BisectResult:
    work = journal.path.parent
    commits = commit_range(mirror, story.begin.older, story.begin.newer).commits
    end_strays(work)  # of a bisection that was killed
    tools.listener.planned(Planned(len(commits) - 1, str(work), story.begin.notes))
    line = whole_line(commits, find_fix=story.begin.request.find_fix)
    layout = layout_of(mirror, story.begin.newer)
    campaign = Campaign(
        mirror, layout, story, journal, work, tools.probe, tools.listener, tools.device_check
    )
    with _told_how_to_resume(work):
        result = _conclude(campaign, line)
    Worktrees(mirror, work / "worktrees").remove()
    return result


def _conclude(campaign: Campaign, line: Line) -> BisectResult:
    request = campaign.story.begin.request
    end, refined = campaign.search(line)
    if end.ending is Ending.FOUND and not request.first_parent:
        end, refined = descend(campaign, end, refined)
    result = result_of(campaign, end, refined)
    if end.ending is Ending.FOUND and request.revert_check and not request.find_fix:
        result = revert_check(campaign, result)
    return replace(result, seconds=round(campaign.elapsed, 1))


@contextmanager
def _told_how_to_resume(work: Path) -> Iterator[None]:
    """Give every error the command that resumes: whatever happens, nothing is lost."""
    command = resume_command(work)
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted("the bisection was interrupted; nothing is lost", command) from error
    except CapdoctorError as error:
        hint = f"{error.hint}; then: {command}" if error.hint else command
        kind = Interrupted if isinstance(error, Interrupted) else CannotDo
        raise kind(error.sentence, hint) from error
