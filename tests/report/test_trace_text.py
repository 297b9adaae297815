"""What the tracer saw, in each form of an answer."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from capdoctor.model import (
    CaptureTrace,
    Diagnosis,
    Evidence,
    Frame,
    Offence,
    OffenceKind,
    Outcome,
    TracedCall,
)
from capdoctor.report.card import diagnosis_card
from capdoctor.report.markdown import diagnosis_markdown
from capdoctor.report.run_card import run_card
from capdoctor.report.sarif import sarif
from capdoctor.report.trace_text import (
    call_text,
    calls_of,
    circumstances,
    fault_notes,
    trace_summary,
)
from tests.helpers.samples import RUN, SPARSE

WAIT = TracedCall(
    "torch.cuda.Stream.wait_event",
    (Frame("vllm/a.py", 1, "outer"), Frame("vllm/b.py", 22, "convert")),
    source="side.wait_event(event)",
    stream=0x55,
    thread="MainThread",
    thread_id=140,
)
RECORD = replace(WAIT, operation="torch.cuda.Event.record", capture=8, number=2)
OFFENCE = Offence(OffenceKind.EVENT_OUTSIDE, WAIT, RECORD)
TRACED = replace(
    SPARSE, trace=OFFENCE, evidence=(Evidence(0, "what", "the tracer saw it", "trace"),)
)


def card_of(found: Diagnosis) -> list[str]:
    return [f"{line.label}: {line.text}" for line in diagnosis_card(found)]


def test_the_card_shows_both_calls_with_where_on_what_and_who_called() -> None:
    card = card_of(TRACED)
    [used] = [line for line in card if line.startswith("used at: ")]
    [recorded] = [line for line in card if line.startswith("recorded at: ")]
    assert "wait_event at vllm/b.py:22 in convert: side.wait_event(event)" in used
    assert "torch.cuda.Event.record" in recorded
    assert "called from: vllm/a.py:1 in outer" in card
    assert ":   capture #2 (id 8), stream 0x55, thread MainThread 140" in card


def test_a_card_without_a_trace_says_nothing_of_one() -> None:
    assert not any("used at" in line or "called from" in line for line in card_of(SPARSE))


def test_markdown_shows_the_whole_stacks() -> None:
    text = diagnosis_markdown(TRACED)
    assert "**Seen by the capture tracer**" in text
    assert "  - `vllm/b.py:22 in convert`\n  - `vllm/a.py:1 in outer`" in text
    assert "- tracer: `what`" in text
    assert "capture tracer" not in diagnosis_markdown(SPARSE)


def test_sarif_has_a_stack_for_each_call_innermost_first() -> None:
    result = json.loads(sarif({"a.log": TRACED}))["runs"][0]["results"][0]
    first, second = result["stacks"]
    place = first["frames"][0]["location"]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "vllm/b.py"}, "region": {"startLine": 22}}
    assert "Event.record" in second["message"]["text"]
    untraced = json.loads(sarif({"a.log": SPARSE}))["runs"][0]["results"][0]
    assert "stacks" not in untraced


@pytest.mark.parametrize("kind", list(OffenceKind))
def test_every_kind_has_words_for_its_calls(kind: OffenceKind) -> None:
    roles = [role for role, _ in calls_of(replace(OFFENCE, kind=kind))]
    assert len({role.clause for role in roles}) == 2
    assert all(len(role.label) < 14 for role in roles)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (TracedCall("cuMemHostAlloc"), "cuMemHostAlloc"),
        (
            TracedCall("aten::item", called_as="torch.Tensor.item"),
            "aten::item (called as torch.Tensor.item)",
        ),
        (TracedCall("f", (Frame("a.py", None, None),)), "f at a.py"),
        (TracedCall("f", source="f(\x1b)\n"), "f: f(\\x1b)"),
    ],
)
def test_a_call_is_told_with_the_parts_that_are_known(call: TracedCall, text: str) -> None:
    assert call_text(call) == text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (TracedCall("f"), ""),
        (TracedCall("f", number=1), "capture #1"),
        (TracedCall("f", capture=7), "capture (id 7)"),
        (TracedCall("f", thread_id=9), "thread 9"),
        (TracedCall("f", thread="w"), "thread w"),
        (TracedCall("f", stream=0), "stream 0x0"),
    ],
)
def test_circumstances_are_told_as_far_as_they_are_known(call: TracedCall, text: str) -> None:
    assert circumstances(call) == text


def test_a_run_says_what_was_traced_and_what_the_tracer_suffered() -> None:
    trace = CaptureTrace((), processes=2, captures=1)
    answer = replace(RUN, outcome=Outcome.STARTED, diagnosis=None, trace=trace, notes=("a\x1b b",))
    lines = [f"{line.label}: {line.text}" for line in run_card(answer)]
    assert "traced: 2 processes, no capture was broken" in lines
    assert "note: a\\x1b b" in lines
    assert not any(line.startswith(("traced", "note")) for line in card_of(SPARSE))


def test_a_broken_capture_that_the_engine_survived_is_shown() -> None:
    trace = CaptureTrace((OFFENCE,), processes=1, captures=4)
    answer = replace(RUN, outcome=Outcome.STARTED, diagnosis=None, trace=trace)
    text = "\n".join(line.text for line in run_card(answer))
    assert "1 process, 1 capture was broken" in text
    assert "and the engine went on" in text


def test_faults_are_told_by_their_last_line_and_not_all() -> None:
    trace = CaptureTrace((), 1, 0, ("Traceback:\n  x\nValueError: no\n", "", "b", "c", "d"))
    assert fault_notes(trace) == (
        "the capture tracer stepped aside: ValueError: no",
        "the capture tracer stepped aside: it does not say why",
        "the capture tracer stepped aside: b",
        "and 2 more faults of the tracer",
    )


def test_several_broken_captures_are_counted() -> None:
    assert trace_summary(CaptureTrace((OFFENCE,) * 2, 1)) == "1 process, 2 captures were broken"
