"""Replaces names of torch while the device is on, and puts every one back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

_MISSING = object()


class Patches:
    """A list of replaced attributes, undone in reverse order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._swapped: dict[int, tuple[Any, Any]] = {}

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a module or class."""
        old = owner.__dict__.get(name, _MISSING)

        def undo() -> None:
            if old is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, old)

        setattr(owner, name, value)
        self._undo.append(undo)
        if old is not _MISSING and callable(old):
            self._swapped[id(old)] = (old, value)

    def rebind(self) -> None:
        """Follow ``from torch.cuda import Stream``: replace the names that user modules hold."""
        for module in list(sys.modules.values()):
            name = getattr(module, "__name__", "")
            if not isinstance(name, str) or name.partition(".")[0] in _NOT_USERS:
                continue
            self._rebind_in(getattr(module, "__dict__", {}))

    def _rebind_in(self, names: dict[str, Any]) -> None:
        swapped = self._swapped
        for key, value in list(names.items()):
            found = swapped.get(id(value))
            if found is not None and found[0] is value:
                names[key] = found[1]
                self._undo.append(_restorer(names, key, value))

    def undo(self) -> None:
        """Put everything back; one failure does not keep the others."""
        with contextlib.ExitStack() as stack:
            for step in self._undo:
                stack.callback(step)
        self._undo.clear()


def _restorer(names: dict[str, Any], key: str, value: Any) -> Callable[[], None]:
    def undo() -> None:
        names[key] = value

    return undo


def replace_all(patches: Patches, owner: Any, values: Mapping[str, Any]) -> None:
    """Replace several attributes of one owner."""
    for name, value in values.items():
        patches.set(owner, name, value)


_NOT_USERS = frozenset(sys.stdlib_module_names) | {"torch", "numpy", "capdoctor", "torchgen"}
