"""Which side stream of a capture was left unjoined."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capdoctor.capture.tracer.inside.calls import Call
from capdoctor.capture.tracer.inside.joins import Joins

ORIGIN = 1


def fork(name: str) -> Call:
    return Call(name, None, (), 0)


def forked(joins: Joins, stream: int) -> None:
    joins.wait(stream, joins.record(ORIGIN), fork(f"fork {stream}"))


def joined(joins: Joins, stream: int) -> None:
    joins.wait(ORIGIN, joins.record(stream), fork(f"join {stream}"))


def test_a_fork_with_work_that_nothing_waits_for_is_unjoined() -> None:
    joins = Joins(ORIGIN)
    forked(joins, 2)
    joins.launch(2)
    left = joins.unjoined()
    assert left is not None
    assert left.operation == "fork 2"


def test_a_fork_that_the_origin_waits_for_is_joined() -> None:
    joins = Joins(ORIGIN)
    forked(joins, 2)
    joins.launch(2)
    joined(joins, 2)
    assert joins.unjoined() is None


def test_work_after_the_join_is_unjoined_again() -> None:
    joins = Joins(ORIGIN)
    forked(joins, 2)
    joined(joins, 2)
    joins.launch(2)
    assert joins.unjoined() is not None


def test_a_join_over_a_third_stream_counts() -> None:
    joins = Joins(ORIGIN)
    forked(joins, 2)
    joins.launch(2)
    joins.wait(3, joins.record(2), fork("fork 3"))
    joins.launch(3)
    joined(joins, 3)
    assert joins.unjoined() is None


def test_a_stream_with_counted_work_comes_before_one_that_only_forked() -> None:
    joins = Joins(ORIGIN)
    forked(joins, 2)
    forked(joins, 3)
    joins.launch(3)
    left = joins.unjoined()
    assert left is not None
    assert left.operation == "fork 3"


@given(st.lists(st.integers(2, 5), unique=True, min_size=1), st.data())
def test_exactly_the_streams_that_are_not_joined_are_found(
    streams: list[int], data: st.DataObject
) -> None:
    left = data.draw(st.sets(st.sampled_from(streams)))
    joins = Joins(ORIGIN)
    for stream in streams:
        forked(joins, stream)
        joins.launch(stream)
    for stream in streams:
        if stream not in left:
            joined(joins, stream)
    found = joins.unjoined()
    assert (found is None) == (not left)
    assert found is None or found.operation in {f"fork {stream}" for stream in left}
