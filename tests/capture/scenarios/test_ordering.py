"""Happens-before between streams."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.capture.scenarios.ordering import Order
from capdoctor.capture.scenarios.outcome import OrderViolation

A, B, C = 1, 2, 3


def test_a_stream_may_read_what_it_wrote() -> None:
    order = Order()
    order.wrote("x", A)
    order.reads("x", A)


def test_another_stream_must_wait_first() -> None:
    order = Order()
    order.wrote("x", A)
    with pytest.raises(OrderViolation, match="x is read on a stream that does not wait"):
        order.reads("x", B)
    order.wait(B, order.now(A))
    order.reads("x", B)


def test_an_event_recorded_before_the_write_orders_nothing() -> None:
    order = Order()
    event = order.now(A)
    order.wrote("x", A)
    order.wait(B, event)
    with pytest.raises(OrderViolation):
        order.reads("x", B)


def test_waiting_is_transitive() -> None:
    order = Order()
    order.wrote("x", A)
    order.wait(B, order.now(A))
    order.wait(C, order.now(B))
    order.reads("x", C)


def test_a_second_write_needs_a_second_wait() -> None:
    order = Order()
    order.wrote("x", A)
    order.wait(B, order.now(A))
    order.wrote("x", A)
    with pytest.raises(OrderViolation):
        order.reads("x", B)


def test_a_barrier_orders_everything() -> None:
    order = Order()
    order.wrote("x", A)
    order.now(B)
    order.barrier()
    order.reads("x", B)


def test_what_nobody_wrote_may_be_read() -> None:
    Order().reads("x", A)


@given(
    st.lists(st.tuples(st.sampled_from(["write", "wait"]), st.integers(0, 3), st.integers(0, 3)))
)
def test_a_read_is_allowed_exactly_when_a_chain_of_waits_leads_from_the_write(
    steps: list[tuple[str, int, int]],
) -> None:
    order, knows = Order(), {stream: set[int]() for stream in range(4)}
    writer = None
    for number, (kind, first, second) in enumerate(steps):
        if kind == "write":
            order.wrote("x", first)
            knows[first].add(number)
            writer = number
        else:
            order.wait(first, order.now(second))
            knows[first] |= knows[second]
    for stream, seen in knows.items():
        if writer is None or writer in seen:
            order.reads("x", stream)
        else:
            with pytest.raises(OrderViolation):
                order.reads("x", stream)
