"""Calls that create tensors: where they go, and which of them copy from the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.utils import _device as default_device

from capdoctor.capture import generators
from capdoctor.capture.memory import claim
from capdoctor.capture.session import Session
from capdoctor.capture.tape import tensors_of
from capdoctor.capture.transfers import judge_copy, to_device, to_host


@cache
def constructors() -> frozenset[Any]:
    """Functions that heed the default device."""
    known = default_device._device_constructors()  # noqa: SLF001 - torch keeps the list there
    return frozenset(known) | {torch.Tensor.new_tensor}


@cache
def _from_data() -> frozenset[Any]:
    return frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor})


def is_cuda_device(device: Any) -> bool:
    """Say whether a device argument means the virtual device.

    Raises:
        RuntimeError: it is a device string that torch does not know, or another GPU.
    """
    if device is None:
        return False
    if isinstance(device, bool):
        return False
    if isinstance(device, int):
        _check_index(device)
        return True
    kind = torch.device(device)
    if kind.type != "cuda":
        return False
    _check_index(kind.index or 0)
    return True


def _check_index(index: int) -> None:
    if index != 0:
        error = getattr(torch, "AcceleratorError", RuntimeError)(
            "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have"
            " enough GPUs?\n"
        )
        raise error


def make(session: Session, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out a call that creates a tensor or takes a generator."""
    generators.check_generator(session, func, args, kwargs)
    asked = kwargs.get("device") is not None
    target = _target(func, args, kwargs)
    pinned = bool(kwargs.pop("pin_memory", False)) if target != "cuda" else False
    if pinned:
        generators.check_pinned_allocation(session)
    if func in _from_data():
        source = _source(func, args, kwargs)
        if isinstance(source, torch.Tensor):
            return _from_tensor(session, func, args, kwargs, target if asked else "", source)
        return _from_host_data(session, func, args, kwargs, target, source, pinned=pinned)
    result = _with_target(session, func, args, kwargs, target)
    if pinned:
        for tensor in tensors_of(result):
            session.tags.mark_pinned(tensor)
    return result


def _target(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Where the result goes: ``cuda``, ``cpu`` (asked for), or the operands decide (empty)."""
    device = kwargs.get("device")
    if device is None and "device" in kwargs:
        del kwargs["device"]
    if device is None and func in default_device._device_constructors():  # noqa: SLF001
        device = default_device.CURRENT_DEVICE
        if device is None:
            return "" if args and isinstance(args[0], torch.Tensor) else "cpu"
    if device is None:
        return ""
    if is_cuda_device(device):
        kwargs["device"] = "cpu"
        return "cuda"
    return "cpu" if torch.device(device).type == "cpu" else ""


def _with_target(
    session: Session,
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    target: str,
) -> Any:
    local = session.local
    outer_call, outer_want = local.call, local.want
    local.call, local.want = (func, args, kwargs), target or None
    try:
        result = func(*args, **kwargs)
    finally:
        local.call, local.want = outer_call, outer_want
    if target == "cuda":
        claim(session, tensors_of(result))
    return result


def _source(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    position = 1 if func is torch.Tensor.new_tensor else 0
    return args[position] if len(args) > position else kwargs.get("data", kwargs.get("obj"))


def _from_host_data(
    session: Session,
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    target: str,
    source: Any,
    *,
    pinned: bool,
) -> Any:
    """torch.tensor and its kin: data of the host is built there and then copied over."""
    if func is torch.Tensor.new_tensor and not target and session.tags.is_cuda(args[0]):
        target = "cuda"
    _judge_nested(session, source)
    result: torch.Tensor = _with_target(session, func, args, kwargs, "cpu")
    if pinned:
        session.tags.mark_pinned(result)
    if target == "cuda":
        name = f"torch.{getattr(func, '__name__', 'tensor')}"
        judge_copy(session, result, name, non_blocking=False, direct=True)
        if func in (torch.as_tensor, torch.asarray):
            result = result.clone()  # it may share memory with an array of the host
        claim(session, (result,))
    return result


def _from_tensor(
    session: Session,
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    target: str,
    source: torch.Tensor,
) -> Any:
    """The same calls given a tensor: a transfer where the sides differ, else torch's own way."""
    on_device = session.tags.is_cuda(source)
    kwargs.pop("device", None)
    name = f"torch.{getattr(func, '__name__', 'as_tensor')}"
    if target == "cuda" and not on_device:
        return to_device(session, source, name, dtype=kwargs.get("dtype"))
    if target == "cpu" and on_device:
        return to_host(session, source, name, dtype=kwargs.get("dtype"))
    result = _with_target(session, func, args, kwargs, "")
    if on_device:
        session.launch(name)
        claim(session, (result,))
    return result


def _judge_nested(session: Session, data: Any) -> None:
    """Device scalars inside a list are read one by one."""
    if isinstance(data, list | tuple):
        for item in data:
            if isinstance(item, torch.Tensor) and session.tags.is_cuda(item):
                session.read_host("host_read", "torch.tensor")
            else:
                _judge_nested(session, item)
