"""Python stand-ins for operators of C++ libraries that are not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from capdoctor.capture.checker.loading import functions_of, loaded
from capdoctor.capture.checker.target import parse_target
from capdoctor.errors import UsageError

_HINT = "for example: --op mylib::rms_norm=stand_ins.py::rms_norm"


def parse_operator(text: str) -> tuple[str, str]:
    """Give (``namespace::name``, ``FILE.py::function``) for one ``--op``.

    Raises:
        UsageError: the text is not of that form.
    """
    name, separator, where = text.partition("=")
    if not separator or name.count("::") != 1 or not where:
        raise UsageError(f"--op {text} is not NAMESPACE::NAME=FILE.py::FUNCTION", _HINT)
    return name, where


@contextmanager
def operators(pairs: Sequence[tuple[str, str]]) -> Iterator[dict[str, Callable[..., Any]]]:
    """Give the stand-ins by name, and define the operators that torch does not know."""
    with ExitStack() as stack:
        found: dict[str, Callable[..., Any]] = {}
        for name, where in pairs:
            target = parse_target(where)
            module = stack.enter_context(loaded(target))
            (found[name],) = functions_of(module, target).values()
            _define(name, found[name], stack)
        yield found


def _define(name: str, function: Callable[..., Any], stack: ExitStack) -> None:
    import torch

    make_library: Any = torch.library.Library

    namespace, _, operator = name.partition("::")
    if hasattr(getattr(torch.ops, namespace), operator):
        return
    library = make_library(namespace, "FRAGMENT")
    stack.callback(library._destroy)  # noqa: SLF001
    try:
        schema = torch.library.infer_schema(function, mutates_args="unknown")
    except ValueError as error:
        raise UsageError(
            f"the stand-in for {name} needs annotated parameters and result: {error}", _HINT
        ) from error
    library.define(operator + schema)
    library.impl(operator, function, "CompositeExplicitAutograd")
