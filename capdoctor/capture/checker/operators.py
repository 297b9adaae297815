"""Operators and kernels that cannot run here: the caller's stand-ins, and a list of the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from capdoctor.capture.checker.loading import functions_of, loaded
from capdoctor.capture.checker.stubs import Unseen
from capdoctor.capture.checker.target import parse_target
from capdoctor.errors import UsageError

_HINT = "for example: --op mylib::rms_norm=stand_ins.py::rms_norm, or --op a_kernel=FILE.py::f"

StandIns = dict[str, Callable[..., Any]]


def parse_operator(text: str) -> tuple[str, str]:
    """Give (``namespace::name`` or a kernel's name, ``FILE.py::function``) for one ``--op``.

    Raises:
        UsageError: the text is not of that form.
    """
    name, separator, where = text.partition("=")
    parts = name.split("::")
    if not separator or not where or len(parts) > 2 or not all(p.isidentifier() for p in parts):  # noqa: PLR2004
        raise UsageError(f"--op {text} is not NAMESPACE::NAME=FILE.py::FUNCTION", _HINT)
    return name, where


@contextmanager
def stand_ins(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[StandIns, StandIns]]:
    """Give the stand-ins for operators and for kernels, by name.

    Operators that torch does not know are defined for the length of the block.
    """
    with ExitStack() as stack:
        found: StandIns = {}
        for name, where in pairs:
            target = parse_target(where)
            module = stack.enter_context(loaded(target))
            (found[name],) = functions_of(module, target).values()
        operators = {name: function for name, function in found.items() if "::" in name}
        for name, function in operators.items():
            _define(name, function, stack)
        yield operators, {n: f for n, f in found.items() if n not in operators}


def _define(name: str, function: Callable[..., Any], stack: ExitStack) -> None:
    import torch
    from torch import library as operators_of_torch

    make_library: Any = operators_of_torch.Library
    namespace, _, operator = name.partition("::")
    if hasattr(getattr(torch.ops, namespace), operator):
        return
    library = make_library(namespace, "FRAGMENT")
    stack.callback(library._destroy)  # noqa: SLF001
    try:
        schema = operators_of_torch.infer_schema(function, mutates_args="unknown")
    except ValueError as error:
        raise UsageError(
            f"the stand-in for {name} needs annotated parameters and result: {error}", _HINT
        ) from error
    library.define(operator + schema)
    library.impl(operator, function, "CompositeExplicitAutograd")


class MissingOperator:
    """An operator of a library that is not installed: it does nothing and is listed."""

    def __init__(self, name: str, unseen: Unseen) -> None:
        self._name = name
        self._unseen = unseen
        self.default = self

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Do nothing, as a kernel that writes into its arguments looks from here."""
        del args, kwargs
        self._unseen.hear(f"operator {self._name} (not installed)")


@contextmanager
def missing_operators(unseen: Unseen) -> Iterator[None]:
    """Let the user's code call operators that torch does not know; torch itself sees no change."""
    import torch
    from torch._ops import _OpNamespace

    own_folder = str(torch.__path__[0])
    original = _OpNamespace.__getattr__

    def getattr_or_missing(self: Any, operator: str) -> Any:
        try:
            return original(self, operator)
        except AttributeError:
            asking = sys._getframe(1).f_code.co_filename  # noqa: SLF001
            if operator.startswith("__") or asking.startswith(own_folder):
                raise
            return MissingOperator(f"{self.name}::{operator}", unseen)

    _OpNamespace.__getattr__ = getattr_or_missing  # type: ignore[method-assign]
    try:
        yield
    finally:
        _OpNamespace.__getattr__ = original  # type: ignore[method-assign]
