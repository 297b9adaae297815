"""Runs something once a module has been imported, by a finder that steps aside when it is done."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import Any


def after_import(name: str, then: Callable[[], Any]) -> None:
    """Call ``then`` right after the module ``name`` is imported for the first time.

    That somebody looks whether the module is there, or fails to import it, is no import.
    """
    sys.meta_path.insert(0, _Finder(name, then))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, then: Callable[[], Any]) -> None:
        self.name = name
        self.then = then
        self._asking = threading.local()

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any | None:
        del path, target
        if fullname != self.name or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.now = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec

    def done(self) -> None:
        """The module is there: step aside, and go on."""
        with contextlib.suppress(ValueError):  # somebody else has changed the list
            sys.meta_path.remove(self)
        self.then()


class _Loader(importlib.abc.Loader):
    """The module's own loader, and something after it; other questions go to the own one."""

    def __init__(self, real: Any, finder: _Finder) -> None:
        self.real = real
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def create_module(self, spec: Any) -> Any:
        return self.real.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)
        self.finder.done()
