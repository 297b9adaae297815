"""Which functions of C are looked at: those that can reach the device."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .names import home_of

_STDLIB = frozenset(getattr(sys, "stdlib_module_names", ())) | {"builtins", "_thread", "time"}
_ALLOWED = frozenset({"gc"})  # a collection may free graphs, which breaks a capture
_PLAIN = frozenset({list, dict, str, tuple, set, frozenset, int, float, bytes, bytearray})
# What functions of several modules are bound to.
_FROM_ANYWHERE = frozenset({"NoneType", "PyCapsule"})
_ANSWERS: dict[Any, bool] = {}


def is_watched(function: Any) -> bool:
    """No methods of plain containers, nothing of the standard library."""
    owner = getattr(function, "__self__", None)
    kind = type(owner)
    if kind in _PLAIN:
        return False
    key = owner if kind is ModuleType or kind is type else kind
    answer = _ANSWERS.get(key)
    if answer is None:
        top = home_of(function).partition(".")[0]
        answer = top not in _STDLIB or top in _ALLOWED
        if kind.__name__ not in _FROM_ANYWHERE and "pybind" not in str(kind.__module__):
            _ANSWERS[key] = answer
    return answer
