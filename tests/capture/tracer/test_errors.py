"""Which operation of a line raised, where no hook saw a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from capdoctor.capture.tracer.inside.calls import Hidden
from capdoctor.capture.tracer.inside.errors import chain_of, raised_json, slot_that_raised

HIDDEN = Hidden(str(Path(torch.__file__).parent) + "/")


def raised_by(function: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each test says which
        function()
    return caught.value


def assigns() -> None:
    torch.zeros(2)[0:1] = torch.zeros(3)


def adds() -> object:
    return torch.zeros(2) + torch.zeros(3)


def says_so_itself() -> None:
    raise RuntimeError("the program's own")


def changes_while_iterating() -> None:
    table = {1: 1}
    for key in table:
        table[key + 1] = 1


def looks_up() -> object:
    return {}["missing"]


@pytest.mark.parametrize(
    ("function", "name"), [(assigns, "torch.Tensor.__setitem__"), (adds, "native code")]
)
def test_a_slot_of_a_tensor_is_named_with_its_line(
    function: Callable[[], object], name: str
) -> None:
    found = slot_that_raised(raised_by(function), HIDDEN)
    assert found is not None
    assert found[0] == name
    assert found[1][0][0] is function.__code__


@pytest.mark.parametrize("function", [says_so_itself, changes_while_iterating, looks_up])
def test_the_programs_own_errors_name_no_operation(function: Callable[[], object]) -> None:
    assert slot_that_raised(raised_by(function), HIDDEN) is None


def test_a_chain_begins_with_what_was_raised_first() -> None:
    def chained() -> None:
        try:
            says_so_itself()
        except RuntimeError as error:
            raise ValueError("then") from error

    assert [type(error) for error in chain_of(raised_by(chained))] == [RuntimeError, ValueError]


def test_the_errors_of_another_thread_are_told_from_its_own_frames() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def waits() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(says_so_itself).result()

    told = raised_json(chain_of(raised_by(waits)), HIDDEN)
    assert told is not None
    assert told["in_thread"] is True
    assert [frame[2] for frame in told["call"]["stack"]] == ["says_so_itself"]
