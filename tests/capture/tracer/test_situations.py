"""Other threads, events used outside, forks, other modes: what the GPU proof runs, on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.capture.tracer.traced import run
from tests.gpu.tracer.cases import CASES, Case

HERE = {name: case for name, case in CASES.items() if not case.needs_gpu}
NAMED = {name: case for name, case in HERE.items() if case.named is not None}


@pytest.mark.parametrize("case", NAMED.values(), ids=NAMED)
def test_the_offender_is_named_with_its_kind_thread_and_place(case: Case, tmp_path: Path) -> None:
    trace = run(case.run, tmp_path).trace
    assert trace is not None
    assert trace.faults == ()
    (offence,) = trace.offences
    assert offence.kind == case.kind
    assert case.named is not None
    assert re.search(case.named, f"{offence.call.operation} {offence.call.called_as}")
    assert offence.call.thread == (case.thread or "MainThread")
    calls = (offence.earlier, offence.call) if len(case.functions) > 1 else (offence.call,)
    places = [call.place.function for call in calls if call is not None and call.place is not None]
    assert places[: len(case.functions)] == list(case.functions)


@pytest.mark.parametrize("name", [name for name in HERE if name not in NAMED])
def test_nothing_is_named_where_all_is_well(name: str, tmp_path: Path) -> None:
    trace = run(HERE[name].run, tmp_path).trace
    assert trace is not None
    assert (trace.offences, trace.faults) == ((), ())


@pytest.mark.parametrize("case", HERE.values(), ids=HERE)
def test_tracing_changes_no_outcome(case: Case, tmp_path: Path) -> None:
    plain, traced = run(case.run, None), run(case.run, tmp_path)
    assert (plain.result, plain.errors) == (traced.result, traced.errors)


def test_the_flagship_shows_the_record_inside_and_the_wait_outside(tmp_path: Path) -> None:
    trace = run(CASES["flagship"].run, tmp_path).trace
    assert trace is not None
    offence = trace.first
    assert offence is not None
    assert offence.earlier is not None
    assert offence.error is not None
    assert (offence.error.type, offence.error.code) == ("AcceleratorError", 1)
    assert (offence.earlier.operation, offence.earlier.number) == ("torch.cuda.Event.record", 1)
    assert (offence.call.called_as, offence.call.number) == ("torch.cuda.Stream.wait_event", None)
    assert 'n["e"].record()' in offence.earlier.source
    assert 'n["S2"].wait_event' in offence.call.source
