"""Loads a model file: one Python file that imports torch only."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_SIZES = (1, 2, 4)


class SetupFailed(Exception):
    """Nothing can be started; the message is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model file gives: ``build()``, ``inputs(batch)`` and its capture sizes."""

    build: Callable[[], Any]
    inputs: Callable[[int], tuple[Any, ...]]
    sizes: tuple[int, ...]


def load(file: Path, shown: str) -> ModelFile:
    """Run a model file as a module; its frames carry the path ``shown``.

    Raises:
        SetupFailed: it cannot be read or run, or lacks what a model file must have.
    """
    module = _run(_source(file, shown), shown)
    build = _callable(module, "build", "build() -> torch.nn.Module", shown)
    inputs = _callable(module, "inputs", "inputs(batch) -> tuple of tensors", shown)
    return ModelFile(build, inputs, _sizes(getattr(module, "CAPTURE_SIZES", DEFAULT_SIZES), shown))


def _source(file: Path, shown: str) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupFailed(f"{shown} cannot be read: {error}.") from error
    # Tracebacks find their source lines here, also when ``shown`` is no path of this machine.
    linecache.cache[shown] = (len(text), None, text.splitlines(keepends=True), shown)
    return text


def _run(text: str, shown: str) -> types.ModuleType:
    module = types.ModuleType("capdoctor_model")
    module.__file__ = shown
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, shown, "exec"), module.__dict__)  # noqa: S102 - running it is the point
    except (Exception, SystemExit) as error:  # documented boundary: a stranger's module
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        name = type(error).__name__
        raise SetupFailed(f"{shown} cannot be imported: {name}: {error}{where}.") from error
    return module


def _callable(module: types.ModuleType, name: str, form: str, shown: str) -> Any:
    found = getattr(module, name, None)
    if not callable(found):
        raise SetupFailed(f"{shown} defines no {name}(): a model file needs {form}.")
    return found


def _sizes(value: Any, shown: str) -> tuple[int, ...]:
    good = (
        isinstance(value, list | tuple)
        and value
        and all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in value)
    )
    if not good:
        raise SetupFailed(f"{shown}: CAPTURE_SIZES must be a list of positive numbers.")
    return tuple(sorted(set(value)))


def check_model(model: Any, shown: str) -> None:
    """Make sure that ``build()`` gave a module.

    Raises:
        SetupFailed: it gave something else.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        kind = type(model).__name__
        raise SetupFailed(f"{shown}: build() must return a torch.nn.Module, not {kind}.")


def check_inputs(given: Any, shown: str) -> tuple[Any, ...]:
    """Make sure that ``inputs()`` gave a tuple of device tensors.

    Raises:
        SetupFailed: it gave something else, or tensors of the host.
    """
    import torch

    if not isinstance(given, tuple):
        raise SetupFailed(f"{shown}: inputs() must return a tuple, not {type(given).__name__}.")
    for position, value in enumerate(given):
        if isinstance(value, torch.Tensor) and not value.is_cuda:
            raise SetupFailed(
                f"{shown}: inputs() must return tensors on 'cuda'; item {position} is on"
                f" {value.device}."
            )
    return given
