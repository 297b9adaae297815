"""The journal folded into what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capdoctor.bisection.journal.story import (
    Begin,
    Run,
    begin_event,
    fold,
    resume_event,
    run_event,
    undo_event,
)
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.request import BisectRequest
from capdoctor.bisection.suspicion import CONTROL
from capdoctor.bisection.verdicts import Reference
from capdoctor.errors import CannotDo

BEGIN = Begin(BisectRequest("r", "good", "bad"), "/repo", "aaa", "zzz")


def _run(sha: str, saw: Saw = Saw.CLEAN, signature: str | None = None) -> Run:
    return Run(sha, "search", Observation(saw, signature), elapsed=1.0)


def test_undo_takes_back_the_last_run_and_can_be_done_twice() -> None:
    runs = [_run("a"), _run("b"), _run("c")]
    story = fold([begin_event(BEGIN), *map(run_event, runs), undo_event(None), undo_event(None)])
    assert [run.sha for run in story.runs] == ["a"]


def test_undo_of_a_commit_takes_back_all_its_runs() -> None:
    runs = [_run("a"), _run("b"), _run("a")]
    story = fold([begin_event(BEGIN), *map(run_event, runs), undo_event("a")])
    assert [run.sha for run in story.runs] == ["b"]


def _control(saw: Saw = Saw.CLEAN, worker: int = 0) -> Run:
    return Run("aaa", CONTROL, Observation(saw), worker=worker)


@pytest.mark.parametrize("sha", [None, "b"])
def test_undo_takes_back_a_verdict_with_the_controls_that_followed_on_it(sha: str | None) -> None:
    """A control that stayed behind would cast doubt on the run before."""
    runs = [_run("a"), _run("b", Saw.CRASH, "s1"), _control(Saw.INFRA), _control(Saw.INFRA)]
    story = fold([begin_event(BEGIN), *map(run_event, runs), undo_event(sha)])
    assert [run.sha for run in story.runs] == ["a"]


def test_undo_leaves_the_controls_of_other_runs_and_workers() -> None:
    runs = [
        _run("b"),
        _control(worker=1),
        _control(),
        _run("c"),
        _control(Saw.INFRA),
        Run("aaa", "search", Observation(Saw.CLEAN)),
    ]
    story = fold([begin_event(BEGIN), *map(run_event, runs), undo_event("b")])
    assert story.runs == (runs[1], *runs[3:])
    story = fold([begin_event(BEGIN), *map(run_event, runs), undo_event("aaa")])
    assert story.runs == tuple(runs[:5])


def test_undo_of_controls_alone_takes_nothing_back() -> None:
    story = fold([begin_event(BEGIN), run_event(_control()), undo_event(None)])
    assert story.runs == (_control(),)


STICKY = Observation(Saw.CRASH, "s1:z", sticky=True)
BROKEN = _control(Saw.INFRA)


@pytest.mark.parametrize(
    ("runs", "signature"),
    [
        ([STICKY], "s1:z"),
        ([STICKY, BROKEN], None),
        ([STICKY, BROKEN, _control(), STICKY, BROKEN], "s1:z"),
        ([STICKY, BROKEN, _control(), replace(STICKY, signature="s1:y"), BROKEN], None),
        # Out of memory, a lost GPU and the like: twice as well, and nobody's fault.
        ([replace(STICKY, sticky=False, suspect=True), BROKEN, _control()] * 2, None),
        ([replace(STICKY, signature=None), BROKEN, _control()] * 2, None),
        ([STICKY, BROKEN, _control(), replace(STICKY, signature="s1:y"), _control()], "s1:y"),
    ],
)
def test_a_fault_that_breaks_its_device_is_looked_for_once_it_came_twice(
    runs: list[Observation | Run], signature: str | None
) -> None:
    told = [run if isinstance(run, Run) else Run("zzz", "search", run) for run in runs]
    reference = fold([begin_event(BEGIN), *map(run_event, told)]).reference
    assert (reference.signature if reference else None) == signature


def test_the_first_crash_of_the_bad_end_is_what_is_looked_for() -> None:
    runs = [_run("m", Saw.CRASH, "s1:m"), _run("zzz", Saw.CRASH, "s1:z"), _run("zzz")]
    story = fold([begin_event(BEGIN), *map(run_event, runs)])
    assert story.reference is not None
    assert story.reference.signature == "s1:z"


def test_taking_it_back_takes_the_reference_back() -> None:
    events = [begin_event(BEGIN), run_event(_run("zzz", Saw.CRASH, "s1:z")), undo_event(None)]
    assert fold(events).reference is None


def test_a_given_reference_wins() -> None:
    begin = Begin(BEGIN.request, "/repo", "aaa", "zzz", (), Reference("s1:given"))
    story = fold([begin_event(begin), run_event(_run("zzz", Saw.CRASH, "s1:z"))])
    assert story.reference == Reference("s1:given")


def test_a_resume_forgets_the_faults_before_it() -> None:
    events = [begin_event(BEGIN), run_event(_run("a", Saw.INFRA)), resume_event()]
    assert fold(events).resumed_at == 1


def test_unknown_events_are_passed_over() -> None:
    assert fold([begin_event(BEGIN), {"event": "of the future"}]).runs == ()


@pytest.mark.parametrize("events", [[], [resume_event()]])
def test_a_journal_begins_with_a_bisection(events: list[dict[str, object]]) -> None:
    with pytest.raises(CannotDo, match="does not begin"):
        fold(events)  # type: ignore[arg-type]


def test_a_newer_journal_is_refused() -> None:
    event = begin_event(Begin(BEGIN.request, "/r", "a", "b", version=99))
    with pytest.raises(CannotDo, match="newer capdoctor"):
        fold([event])
