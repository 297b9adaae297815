"""Of what raised in a capture: which was it whose exception left it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from capdoctor.capture.tracer.inside.calls import Call
from capdoctor.capture.tracer.inside.suspects import Suspects

CODE = sys._getframe().f_code


def call(operation: str, line: int, called_as: str | None = None) -> Call:
    return Call(operation, called_as, ((CODE, line),), 1)


def named(suspects: Suspects, text: str, lines: Iterable[int]) -> str | None:
    found = suspects.raised(RuntimeError(text), {(CODE, line) for line in lines})
    return None if found is None else found.operation


def test_the_innermost_name_stays_while_an_exception_goes_up() -> None:
    suspects = Suspects()
    assert suspects.add(call("aten::item", 1, "Tensor.item"), RuntimeError("a"))
    assert suspects.add(call("Tensor.item", 1), None) is None
    assert named(suspects, "a", {1, 2}) == "aten::item"


def test_the_exception_tells_two_operations_of_a_line_apart() -> None:
    suspects = Suspects()
    suspects.add(call("first", 1), RuntimeError("a"))
    suspects.add(call("second", 1), RuntimeError("b"))
    assert named(suspects, "a", {1}) == "first"
    assert named(suspects, "b", {1}) == "second"


def test_of_two_that_say_the_same_the_later_one_counts() -> None:
    suspects = Suspects()
    for name in ("first", "second", "first"):
        suspects.add(call(name, 1), RuntimeError("a"))
    assert named(suspects, "a", {1}) == "first"


def test_an_exception_from_elsewhere_names_nothing() -> None:
    suspects = Suspects()
    suspects.add(call("first", 1), RuntimeError("a"))
    suspects.add(Call("nowhere", None, (), 1), RuntimeError("a"))
    assert named(suspects, "a", {2}) is None
    assert named(suspects, "a", ()) is None


def test_thousands_that_were_caught_hide_nothing_and_are_not_all_written_down() -> None:
    suspects = Suspects()
    written = [suspects.add(call(str(line), line), RuntimeError("a")) for line in range(5_000)]
    assert named(suspects, "a", {4_999}) == "4999"
    assert 0 < sum(one is not None for one in written) <= 200
