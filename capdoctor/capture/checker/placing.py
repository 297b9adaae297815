"""Put findings where the user looks: at the lines of the captured function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType
from typing import Any

from capdoctor.model import Finding, Frame


def placed(findings: Iterable[Finding], outside: tuple[Frame, ...], at_end: Frame) -> list[Finding]:
    """Cut the frames of whoever called us, and tell what a loop repeats only once.

    ``outside`` are the frames around the call of the captured function; ``at_end`` is the place
    of what has no line of its own, such as what only shows at the capture's end.
    """
    once: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        told = _placed(finding, outside, at_end)
        once.setdefault((told.rule, told.operation, told.stack), told)
    return list(once.values())


def _placed(finding: Finding, outside: tuple[Frame, ...], at_end: Frame) -> Finding:
    from capdoctor.capture.stacks import place_of

    stack = finding.stack
    if stack[: len(outside)] == outside:
        stack = stack[len(outside) :]
    at = place_of(stack) or at_end
    return replace(
        finding, stack=stack, file=at.file, line=at.line or 0, function=at.function or ""
    )


def place_of_function(name: str, function: Any, module: ModuleType) -> Frame:
    """Give the first line of a function, method, module or partial; else the module's."""
    from capdoctor.capture.stacks import short_path

    while isinstance(function, functools.partial):
        function = function.func
    for candidate in (function, getattr(function, "forward", None), type(function).__call__):
        code = getattr(inspect.unwrap(candidate), "__code__", None) if candidate else None
        if code is not None:
            return Frame(short_path(code.co_filename), code.co_firstlineno, code.co_name)
    return Frame(short_path(module.__file__ or name), 1, name)
