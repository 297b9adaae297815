"""The journal folded into what is known."""

from __future__ import annotations

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
