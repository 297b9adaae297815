"""Put findings where the user looks: at the lines of the captured function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from capdoctor.model import Finding, Frame


def placed(
    findings: Iterable[Finding], outside: tuple[Frame, ...], function: Callable[..., Any]
) -> list[Finding]:
    """Cut the frames of whoever called us, and tell what a loop repeats only once.

    ``outside`` are the frames around the call of ``function``.
    """
    once: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        told = _placed(finding, outside, function)
        once.setdefault((told.rule, told.operation, told.stack), told)
    return list(once.values())


def _placed(finding: Finding, outside: tuple[Frame, ...], function: Callable[..., Any]) -> Finding:
    stack = finding.stack
    if stack[: len(outside)] == outside:
        stack = stack[len(outside) :]
    if not stack:
        return _at_function(finding, function)
    last = stack[-1]
    return replace(
        finding, stack=stack, file=last.file, line=last.line or 0, function=last.function or ""
    )


def _at_function(finding: Finding, function: Callable[..., Any]) -> Finding:
    """Give what only shows at the capture's end the place of the function itself."""
    from capdoctor.capture.stacks import short_path

    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return replace(finding, stack=())
    file, line = short_path(code.co_filename), code.co_firstlineno
    return replace(finding, stack=(), file=file, line=line, function=code.co_name)
