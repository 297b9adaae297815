"""Keeps torch's compiler away from the tracer's own functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def skip_own_code() -> None:
    """Mark all code of this package as not to be compiled, where this torch can."""
    skip = _skip(sys.modules.get("torch._C._dynamo.eval_frame"))
    if skip is not None:
        for code in _codes():
            skip(code)


def _skip(frames: Any) -> Callable[[CodeType], object] | None:
    """How this torch marks code: by a function of its own until 2.6, then by a strategy."""
    older = getattr(frames, "skip_code", None)
    if older is not None or not hasattr(frames, "set_code_exec_strategy"):
        return older
    action = frames._FrameAction  # noqa: SLF001 - there is no public way without the compiler
    strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)  # noqa: SLF001
    return lambda code: frames.set_code_exec_strategy(code, strategy)


def _codes() -> Iterator[CodeType]:
    prefix = __name__.rpartition(".")[0] + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix):
            yield from _codes_in(vars(module), name)


def _codes_in(names: dict[str, object], module: str) -> Iterator[CodeType]:
    for value in list(names.values()):
        if isinstance(value, FunctionType) and value.__module__ == module:
            yield value.__code__
        elif isinstance(value, type) and value.__module__ == module:
            yield from _codes_in(dict(vars(value)), module)
