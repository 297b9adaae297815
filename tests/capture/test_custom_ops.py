"""Operators of libraries: Python kernels are looked into, others are listed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from capdoctor.capture.device import VirtualDevice


@pytest.fixture(scope="module")
def library() -> Iterator[str]:
    """A few operators, registered as projects register theirs."""
    name = "capdoctor_test_ops"
    lib = torch.library.Library(name, "DEF")
    lib.define("on_cuda(Tensor x) -> Tensor")
    lib.define("on_cpu(Tensor x) -> Tensor")
    lib.define("in_place(Tensor(a!) x) -> ()")
    lib.define("no_kernel(Tensor x) -> Tensor")
    lib.impl("on_cuda", lambda x: x * int(x.sum()), "CUDA")
    lib.impl("on_cpu", lambda x: x.clone() if bool(x.any()) else x + 1, "CPU")
    lib.impl("in_place", _store, "CUDA")

    @torch.library.custom_op(f"{name}::decorated", mutates_args=())
    def decorated(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        out[0] = 1.0
        return out

    yield name
    lib._destroy()


def _store(x: torch.Tensor) -> None:
    x[0] = 3.0


@pytest.mark.parametrize(
    ("operator", "rule"),
    [
        ("on_cuda", "host_read"),
        ("on_cpu", "host_read"),
        ("in_place", "pageable_copy"),
        ("decorated", "pageable_copy"),
    ],
)
def test_python_kernels_are_looked_into(library: str, operator: str, rule: str) -> None:
    with VirtualDevice(as_torch="2.11", stop_at_first=False) as device:
        x = torch.zeros(4, device="cuda")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            result = getattr(getattr(torch.ops, library), operator)(x)
        assert [f.rule for f in device.findings] == [rule]
        assert device.covered.unknown == ()
        assert result is None or result.is_cuda


def test_an_operator_raises_inside_as_the_device_would(library: str) -> None:
    with VirtualDevice(as_torch="2.11"):
        x = torch.zeros(4, device="cuda")
        with (
            pytest.raises(RuntimeError, match="operation failed due to a previous error") as caught,
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            getattr(torch.ops, library).on_cuda(x)
        assert "operation not permitted" in str(caught.value.__context__)


def test_a_stub_stands_in_for_what_cannot_run_here(library: str) -> None:
    stubs = {f"{library}::no_kernel": lambda x: x + x.sum()}
    with VirtualDevice(stubs=stubs) as device:
        out = getattr(torch.ops, library).no_kernel(torch.ones(2, device="cuda"))
        assert out.tolist() == [3.0, 3.0]
        assert device.covered.unknown == ()


def test_without_a_stub_it_is_listed_and_fails_as_torch_says(library: str) -> None:
    with VirtualDevice() as device:
        with pytest.raises(NotImplementedError, match="no_kernel"):
            getattr(torch.ops, library).no_kernel(torch.ones(2, device="cuda"))
        assert device.covered.unknown == (f"{library}::no_kernel",)


def test_outside_a_device_the_operators_are_as_before(library: str) -> None:
    with VirtualDevice():
        pass
    assert getattr(torch.ops, library).on_cpu(torch.zeros(2)).tolist() == [1.0, 1.0]
