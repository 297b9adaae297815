"""Stand-ins for packages that are not installed."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass

import pytest

from capdoctor.capture.checker.stubs import StubModule, Unseen, installed, stubbed


class Tensor:
    def data_ptr(self) -> int:
        return 0


@pytest.fixture
def heard():  # noqa: ANN201
    unseen = Unseen()
    with stubbed(("stubbed_pkg", "triton"), unseen):
        yield unseen


def test_anything_can_be_imported_and_used(heard: Unseen) -> None:
    ops = importlib.import_module("stubbed_pkg.deep.ops")

    @dataclass
    class Child(ops.Base):
        field: ops.Config | None = None

    assert issubclass(Child, ops.Base)
    assert isinstance(ops.make(1, key=2), object)
    assert ops.TABLE["a"].b.c(3) is not None
    assert list(ops.names) == []
    assert ops.Generic[int] is ops.Generic
    assert ops.Base is ops.Base
    assert list(heard.names) == []


def test_only_calls_with_tensors_are_heard(heard: Unseen) -> None:
    ops = importlib.import_module("stubbed_pkg.ops")
    ops.norm(Tensor(), 1e-5)
    ops.tools().norm(out=Tensor())
    ops.configure(4)
    assert list(heard.names) == ["call of norm"]


def test_a_kernel_can_be_launched_and_an_ordinary_decorator_changes_nothing(
    heard: Unseen,
) -> None:
    triton = importlib.import_module("triton")

    @triton.autotune(configs=[triton.Config({"B": 1}, num_warps=4)], key=["n"])
    @triton.heuristics({"EVEN": len})
    @triton.jit
    def kernel(x: object, n: int) -> None:
        raise AssertionError("never run")

    @triton.guard
    def plain() -> int:
        return 3

    @triton.guard("name")
    def also_plain() -> int:
        return 4

    kernel[(triton.cdiv(5, 2), 1)](Tensor(), 5)
    assert list(heard.names) == ["kernel kernel"]
    assert (plain(), also_plain()) == (3, 4)
    assert triton.cdiv(5, 2) == 3
    assert [triton.next_power_of_2(n) for n in (1, 2, 3, 5)] == [1, 2, 4, 8]
    assert triton.Config({"B": 1}, num_warps=4).all_kwargs() == {"B": 1, "num_warps": 4}


def test_everything_is_put_back() -> None:
    finders = list(sys.meta_path)
    with stubbed(("json",), Unseen()):
        assert importlib.import_module("json").loads is not json.loads
    assert importlib.import_module("json") is json
    assert sys.meta_path == finders
    with installed({"no_pkg.mod": StubModule("no_pkg.mod"), "json": StubModule("json")}):
        assert sys.modules["no_pkg"].mod is sys.modules["no_pkg.mod"]
    assert "no_pkg" not in sys.modules
    assert sys.modules["json"] is json


def test_a_strict_module_has_only_what_it_was_given() -> None:
    module = StubModule("m", strict=True)
    module.given = 1
    assert module.given == 1
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = module.other
