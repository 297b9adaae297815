"""User code inside the backward pass is seen as everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from capdoctor.capture.device import VirtualDevice


class ReadsInBackward(torch.autograd.Function):
    """Copies the gradient to the host."""

    @staticmethod
    def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(_ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        gradient.cpu()
        return gradient


def custom_function(x: torch.Tensor) -> None:
    ReadsInBackward.apply(x).sum().backward()


def the_engine_itself(x: torch.Tensor) -> None:
    torch.autograd.backward(ReadsInBackward.apply(x).sum())


def autograd_grad(x: torch.Tensor) -> None:
    torch.autograd.grad(ReadsInBackward.apply(x).sum(), x)


def tensor_hook(x: torch.Tensor) -> None:
    x.register_hook(lambda gradient: gradient * len(gradient.tolist()))
    (x * 2).sum().backward()


@pytest.mark.parametrize("body", [custom_function, the_engine_itself, autograd_grad, tensor_hook])
def test_a_copy_to_the_host_is_found_once(body: Callable[[torch.Tensor], None]) -> None:
    with VirtualDevice(as_torch="2.11", stop_at_first=False) as device:
        x = torch.ones(4, device="cuda", requires_grad=True)
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            body(x)
        assert [finding.rule for finding in device.findings] == ["pageable_copy"]
    assert torch.autograd._engine_run_backward.__module__ == "torch.autograd.graph"


def test_a_gradient_is_on_the_device_inside_a_hook() -> None:
    seen = []
    with VirtualDevice():
        x = torch.ones(4, device="cuda", requires_grad=True)
        x.register_hook(lambda gradient: seen.append(gradient.device.type))
        (x * 2).sum().backward()
    assert seen == ["cuda"]
