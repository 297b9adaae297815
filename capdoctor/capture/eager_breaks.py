"""Where a piecewise capture breaks: modules marked ``eager_break``, functions named by the user."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from capdoctor.capture.segments import PiecewiseCapture
from capdoctor.errors import CannotDo


def breaking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give the function, run between two segments whenever a piecewise capture is on."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        capture = PiecewiseCapture.running()
        if capture is None:
            return function(*args, **kwargs)
        return capture.eager(lambda: function(*args, **kwargs))

    return wrapper


@contextmanager
def breaking_modules() -> Iterator[None]:
    """Make modules with ``eager_break = True`` break a capture for the length of the block."""
    import torch

    original = torch.nn.Module.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_break(self):
            return breaking(functools.partial(original, self))(*args, **kwargs)
        return original(self, *args, **kwargs)

    torch.nn.Module.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.Module.__call__ = original  # type: ignore[method-assign]


def is_break(module: Any) -> bool:
    """Say whether a module asks to run between two segments."""
    return getattr(module, "eager_break", False) is True


@contextmanager
def breaking_functions(module: ModuleType, names: Sequence[str]) -> Iterator[None]:
    """Make the named functions of a module break a capture for the length of the block.

    Raises:
        CannotDo: the module has no such function.
    """
    undo: list[Callable[[], None]] = []
    try:
        undo.extend(_replace(module, name) for name in names)
        yield
    finally:
        for put_back in reversed(undo):
            put_back()


def _replace(module: ModuleType, name: str) -> Callable[[], None]:
    *path, last = name.split(".")
    owner: Any = module
    for part in path:
        owner = getattr(owner, part, None)
    function = getattr(owner, last, None)
    if not callable(function):
        raise CannotDo(f"--eager {name}: {module.__name__} has no such function")
    setattr(owner, last, breaking(function))
    return lambda: setattr(owner, last, function)
