"""Operators of libraries: those written in Python are looked into, the others are listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch._C import DispatchKey, DispatchKeySet

from capdoctor.capture.tape import tensors_of

if TYPE_CHECKING:
    from capdoctor.capture.dispatch_mode import DispatchMode

_KEYS = ("CUDA", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_BACKEND = {"CompositeExplicitAutograd": "CPU", "CompositeImplicitAutograd": "CPU"}
_REGISTERED = re.compile(r"^(\w+)(?:\[alias\])?: registered at (.+?):\d+ ::", re.MULTILINE)


def look_into(
    mode: DispatchMode,
    func: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    on_device: bool,
) -> Any:
    """Run an operator with both nets on inside it, if its kernel is Python or a stub is given.

    Otherwise it runs unseen and its name is kept for the report. Results count as device memory
    when an operand did.
    """
    session = mode.session
    name = func.name().removesuffix(".default")
    stub = session.stubs.get(name)
    if stub is not None:
        result = _watched(mode, stub, args, kwargs)
    else:
        key, is_python = _kernel(func.name())
        if is_python:
            keys = DispatchKeySet(getattr(DispatchKey, key))
            result = _watched(mode, func.redispatch, (keys, *args), kwargs)
        else:
            if on_device:
                session.unknown.setdefault(name)
            result = func(*args, **kwargs)
    if on_device:
        for tensor in tensors_of(result):
            session.tags.mark_cuda(tensor)
    return result


def _watched(
    mode: DispatchMode, call: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Both nets are taken off while a kernel runs; put them back for its inside."""
    from capdoctor.capture.function_mode import FunctionMode

    with mode:
        if torch._C._len_torch_function_stack():  # noqa: SLF001
            return call(*args, **kwargs)
        with FunctionMode(mode.session):
            return call(*args, **kwargs)


@cache
def _kernel(name: str) -> tuple[str, bool]:
    """The backend whose kernel runs, and whether that kernel is Python.

    The dispatcher's own listing names the source file of each registration.
    """
    found = dict(_REGISTERED.findall(torch._C._dispatch_dump(name)))  # noqa: SLF001
    for key in _KEYS:
        if found.get(key, "").endswith(".py"):
            return _BACKEND.get(key, key), True
    return "CPU", False
