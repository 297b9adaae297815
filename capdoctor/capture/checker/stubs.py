"""Stand-ins for modules that a source imports but that are not installed or not of interest.

A stand-in can be called, subclassed, annotated with and asked for anything. What is decorated as
a device kernel becomes something that can be launched and does nothing, unless the caller gave
a Python stand-in for it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_KERNEL_DECORATORS = {"jit", "kernel", "autotune", "heuristics", "compile_ops"}
# Arithmetic that launch code does on the host with its kernel library's help.
_HOST_HELPERS: dict[str, Callable[..., Any]] = {
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda n: 1 << max(0, n - 1).bit_length(),
}


class LaunchConfig:
    """What ``triton.Config`` keeps: host values that launch code reads back."""

    def __init__(self, kwargs: Mapping[str, Any], **options: Any) -> None:
        self.kwargs = dict(kwargs)
        self.options = options

    def all_kwargs(self) -> dict[str, Any]:
        """Give the meta-parameters and the options together."""
        return {**self.kwargs, **self.options}


_OWN_STAND_INS = {"triton.Config": LaunchConfig}


@dataclass
class Unseen:
    """What stand-ins were asked to do and did not; ``kernels`` are the caller's own, by name."""

    names: dict[str, None] = field(default_factory=dict)
    kernels: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def hear(self, what: str) -> None:
        """Keep the name of something that was not done."""
        self.names.setdefault(what)

    def launch(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Run the caller's stand-in for a kernel, with the arguments that it takes."""
        function = self.kernels.get(name)
        if function is None:
            self.hear(f"kernel {name}")
            return
        taken = inspect.signature(function).parameters
        function(*args, **{key: value for key, value in kwargs.items() if key in taken})


class Launchable:
    """A device kernel: ``kernel[grid](...)`` does nothing here, and is heard of."""

    def __init__(self, function: Callable[..., Any], unseen: Unseen) -> None:
        self._unseen = unseen
        functools.update_wrapper(self, function)

    def __getitem__(self, grid: Any) -> Launchable:
        """Take a grid."""
        return self

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Be launched."""
        self._unseen.launch(self.__name__, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """Have whatever a compiled kernel has."""
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name, self._unseen)()


class _Anything(type):
    """A class whose every attribute is another stand-in."""

    _unseen: Unseen

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name, cls._unseen)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


def make_stub(name: str, unseen: Unseen) -> Any:
    """Give a stand-in of this name."""
    if name in _HOST_HELPERS:
        return _HOST_HELPERS[name]

    members = {"__init__": _take_anything, "_unseen": unseen, "_stub_name": name}
    return _Anything(name, (_StandIn,), members)


def _take_anything(self: object, *args: object, **kwargs: object) -> None:
    """Be made with whatever is given."""
    del self, args, kwargs


class _StandIn:
    """What every stand-in can do; the name and the listener are the subclass's."""

    _unseen: Unseen
    _stub_name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        decorated = _decorated(cls._stub_name, args, kwargs, cls._unseen)
        if decorated is not None:
            return decorated
        _hear(cls._stub_name, (*args, *kwargs.values()), cls._unseen)
        return object.__new__(cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        decorated = _decorated(self._stub_name, args, kwargs, self._unseen)
        if decorated is not None:
            return decorated
        _hear(self._stub_name, (*args, *kwargs.values()), self._unseen)
        return make_stub(self._stub_name, self._unseen)()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name, self._unseen)()

    def __getitem__(self, index: object) -> Any:
        return make_stub(f"{self._stub_name}[{index}]", self._unseen)()

    def __setitem__(self, index: object, value: object) -> None:
        del index, value

    def __iter__(self) -> Iterator[Any]:
        return iter(())


def _decorated(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], unseen: Unseen) -> Any:
    """Give what a decorator of this name makes of a function; None if it is no decoration."""
    if len(args) != 1 or kwargs or not callable(args[0]) or isinstance(args[0], type):
        return None
    if name in _KERNEL_DECORATORS and not isinstance(args[0], Launchable):
        return Launchable(args[0], unseen)
    return args[0]


def _hear(name: str, given: Sequence[Any], unseen: Unseen) -> None:
    """Only what is given tensors may have worked on the device."""
    if any(hasattr(value, "data_ptr") and not isinstance(value, type) for value in given):
        unseen.hear(f"call of {name}")


class StubModule(ModuleType):
    """A module that has whatever is asked of it; a ``strict`` one has only what it was given."""

    def __init__(self, name: str, *, strict: bool = False, unseen: Unseen | None = None) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._strict = strict
        self._unseen = unseen or Unseen()

    def __getattr__(self, name: str) -> Any:
        """Make what is asked for, once."""
        if name.startswith("__") or self.__dict__.get("_strict"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        own = _OWN_STAND_INS.get(f"{self.__name__}.{name}")
        stub = make_stub(name, self._unseen) if own is None else own
        setattr(self, name, stub)
        return stub


class StubFinder:
    """Answers every import below the given roots with a stand-in."""

    def __init__(self, roots: Sequence[str], unseen: Unseen) -> None:
        self._roots = frozenset(roots)
        self._unseen = unseen

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Claim the modules below our roots."""
        del path, target
        if not any(name == root or name.startswith(f"{root}.") for root in self._roots):
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        return StubModule(spec.name, unseen=self._unseen)

    def exec_module(self, module: ModuleType) -> None:
        """Leave it as it is."""


@contextmanager
def stubbed(roots: Sequence[str], unseen: Unseen) -> Iterator[None]:
    """Replace these packages by stand-ins for the length of the block."""
    finder = StubFinder(roots, unseen)
    hidden = {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if finder.find_spec(name) is not None
    }
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if finder.find_spec(name) is not None]:
            del sys.modules[name]
        sys.modules.update(hidden)


@contextmanager
def installed(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Put the modules into ``sys.modules``, parents included, for the length of the block."""
    full = dict(modules)
    for name in modules:
        parent = name.rpartition(".")[0]
        while parent and parent not in full:
            full[parent] = StubModule(parent)
            parent = parent.rpartition(".")[0]
    before = {name: sys.modules.get(name) for name in full}
    sys.modules.update(full)
    for name, module in full.items():
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(full.get(parent) or sys.modules[parent], last, module)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = former
