"""Which functions an engine calls inside a capture, and which it never does."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from capdoctor.capture.static import values
from capdoctor.capture.static.modules import ClassFacts, Function, ModuleFacts, annotated
from capdoctor.capture.static.summary import Root
from capdoctor.capture.static.tables import matches

# By this name the checker knows what is to be captured.
_CAPTURED = "captured"


@dataclass(frozen=True, slots=True)
class Role:
    """What a function is to a capture: a root of it, blocked from it, or met seldom."""

    root: Root | None = None
    blocked: str = ""
    seldom: bool = False


def is_device_code(function: Function, facts: ModuleFacts) -> bool:
    """Say whether a decorator compiles this function for the device (Triton, CuTe, TileLang)."""
    for decorator in _decorators(function, facts):
        if matches("device_code_decorator", decorator) and not matches("torch_jit", decorator):
            return True
    return False


def _decorators(function: Function, facts: ModuleFacts) -> list[str]:
    targets = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return [facts.dotted(target) for target in targets]


def role_of(
    function: Function, cls: ClassFacts | None, facts: ModuleFacts, path: str, *, launches: bool
) -> Role:
    """Say what the function is to a capture."""
    decorators = _decorators(function, facts)
    blocked = _blocked(function, cls, decorators, path)
    seldom = _seldom(function, cls, decorators, path)
    if blocked:
        return Role(blocked=blocked, seldom=seldom)
    return Role(_root(function, cls, facts, decorators, launches), "", seldom)


def _blocked(function: Function, cls: ClassFacts | None, decorators: list[str], path: str) -> str:
    if matches("offline_path", path):
        return "its file is not part of a model's forward pass"
    if any(matches("eager_decorator", name) for name in decorators):
        return "it runs eagerly between captured segments"
    if any(matches("fake_decorator", name) for name in decorators):
        return "it describes an operator and does not run on the device"
    called = function.name in {"forward", "apply"} or function.name.startswith("forward_")
    if matches("offline_function", function.name) and function.name != "__call__":
        return "its name says set-up, loading, tuning or reference"
    if cls is not None and matches("offline_class", cls.name) and not called:
        return "its class works outside the forward pass"
    return ""


def _seldom(function: Function, cls: ClassFacts | None, decorators: list[str], path: str) -> bool:
    return (
        matches("seldom_path", path)
        or matches("seldom_function", function.name)
        or any(matches("seldom_parameter", item.arg) for item in function.args.args)
        or any(matches("cached_decorator", name) for name in decorators)
        or (cls is not None and matches("seldom_class", cls.name))
        or (cls is not None and any(base.endswith("Function") for base in cls.bases))
    )


def _root(
    function: Function,
    cls: ClassFacts | None,
    facts: ModuleFacts,
    decorators: list[str],
    launches: bool,
) -> Root | None:
    if function.name.startswith(_CAPTURED):
        return "captured"
    if function.name in facts.registered:
        return "operator"
    if any(matches("operator_decorator", name) for name in decorators):
        return "operator"
    if cls is not None:
        return _method_root(function, cls, facts)
    if launches:
        return "launcher"
    return "takes_tensors" if _takes_tensors(function, facts) else None


def _method_root(function: Function, cls: ClassFacts, facts: ModuleFacts) -> Root | None:
    if matches("forward_method", function.name):
        if cls.bases:
            return "forward"
        return "takes_tensors" if _takes_tensors(function, facts) else None
    if matches("apply_method", function.name) and matches("apply_class", cls.name):
        return "apply"
    return None


def _takes_tensors(function: Function, facts: ModuleFacts) -> bool:
    for argument in [*function.args.args, *function.args.kwonlyargs]:
        value = annotated(argument.annotation, "", facts)
        if value == values.tensor("device", values.ASSUMED) or value.kind == "device":
            return True
    return False
