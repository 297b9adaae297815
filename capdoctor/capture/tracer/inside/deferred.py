"""Runs something once a module has been imported, by a finder that steps aside when it is done."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from typing import Any


def after_import(name: str, then: Callable[[], Any]) -> None:
    """Call ``then`` right after the module ``name`` is imported for the first time."""
    sys.meta_path.insert(0, _Finder(name, then))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, then: Callable[[], Any]) -> None:
        self.name = name
        self.then = then

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any | None:
        del path, target
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, self.then)
        return spec


class _Loader(importlib.abc.Loader):
    """The module's own loader, and something after it."""

    def __init__(self, real: Any, then: Callable[[], Any]) -> None:
        self.real = real
        self.then = then

    def create_module(self, spec: Any) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)
        self.then()
