"""Random programs: with the tracer they give the same results and raise the same exceptions."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capture.tracer.traced import Names, run
from tests.gpu.tracer.cases import capturing

LEGAL = (
    "x.add_(1)",
    "x[0:1] = 0",
    "x.mul_(2)",
    "e.record()",
    "S2.wait_stream(torch.cuda.current_stream())",
    "torch.cuda.current_stream().wait_stream(S2)",
    "torch.cuda.current_stream().wait_event(e)",
    "with torch.cuda.stream(S2): x.add_(1)",
    "y = y @ y",
    "torch.rand(4, device='cuda')",
)
ILLEGAL = (
    "x[0] = 0",
    "s.item()",
    "x.cpu()",
    "torch.cuda.synchronize()",
    "e.synchronize()",
    "eo.query()",
    "torch.cuda.current_stream().wait_event(eo)",
    "x.nonzero()",
    "raise KeyError('of the program itself')",
)
LINES = st.one_of(
    st.sampled_from(LEGAL),
    st.sampled_from(LEGAL + ILLEGAL),
    st.sampled_from(ILLEGAL).map(
        lambda line: f"try: {line}\nexcept Exception as r: said.append(str(r))"
    ),
)
PROGRAMS = st.lists(st.lists(LINES, min_size=1, max_size=5), min_size=1, max_size=3)


def of(segments: list[list[str]], between: list[str]) -> Callable[[Names], object]:
    def call(names: Names) -> object:
        said: list[str] = []
        names["said"] = said
        for lines, line in zip(segments, between, strict=False):
            with capturing(names):
                for inner in lines:
                    exec(inner, names)  # noqa: S102 - drawn from the lists above
            exec(line, names)  # noqa: S102
        return names["x"].tolist(), said

    return call


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(PROGRAMS, st.lists(LINES, min_size=3, max_size=3))
def test_tracing_changes_neither_results_nor_exceptions(
    segments: list[list[str]], between: list[str]
) -> None:
    program = of(segments, between)
    with tempfile.TemporaryDirectory() as folder:
        plain = run(program, None)
        traced = run(program, Path(folder))
    assert (plain.result, plain.errors) == (traced.result, traced.errors)
    assert traced.trace is not None
    assert traced.trace.faults == ()
    if not plain.errors:
        assert all(offence.error for offence in traced.trace.offences)
