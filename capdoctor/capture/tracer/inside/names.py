"""What an engineer would call a call: the public name of what the program itself called."""

from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any

# What pybind11 binds a function to, older and newer: it says nothing about the function.
_BOUND = ("PyCapsule", "pybind11_detail_function_record")
_DISPATCH = frozenset({"torch._ops", "torch.overrides", "torch.utils._python_dispatch"})
_CARRIERS = frozenset(
    {"_call_impl", "_wrapped_call_impl", "__torch_dispatch__", "__torch_function__", "_fn"}
)


def callable_name(function: Any) -> str:
    """``torch.Tensor.item``, ``torch.tensor``, ``torch.cuda.cudart().cudaHostRegister``."""
    if hasattr(function, "_schema"):
        return operator_name(function)
    name = getattr(function, "__name__", None) or type(function).__name__
    home = home_of(function)
    owner = getattr(function, "__self__", None)
    kind = owner if isinstance(owner, type) else type(owner)
    if owner is None or isinstance(owner, ModuleType) or kind.__name__.startswith(_BOUND):
        return f"{public_module(home, name)}.{name}" if home else str(name)
    return f"{public_module(home, kind.__qualname__)}.{kind.__qualname__}.{name}"


def operator_name(operator: Any) -> str:
    """``aten::fill_.Scalar``; other callables by their own names."""
    name = getattr(operator, "name", None)
    return str(name()) if callable(name) else str(operator)


def home_of(function: Any) -> str:
    """The module of a function of C, or of the class that it is a method of; empty if unknown."""
    owner = getattr(function, "__self__", None)
    kind = type(owner)
    home: Any
    if isinstance(owner, ModuleType):
        home = getattr(owner, "__name__", None)
    elif owner is None:  # torch's own functions that hang at no object
        home = getattr(function, "__module__", None) or "torch"
    elif kind.__name__.startswith(_BOUND):
        home = getattr(function, "__module__", None)
    else:
        home = (owner if kind is type else kind).__module__
    return home if isinstance(home, str) else ""


def frame_name(frame: FrameType) -> str:
    """``torch.cuda.Stream.wait_stream``: a Python function by the frame that runs it."""
    code = frame.f_code
    qualified = getattr(code, "co_qualname", None) or _qualified(frame)
    module = str(frame.f_globals.get("__name__", ""))
    if module.partition(".")[0] != "torch":  # it stands in for torch's own
        offered = hasattr(sys.modules["torch.cuda"], qualified.partition(".")[0])
        return f"torch.cuda.{qualified if offered else code.co_name}"
    return f"{public_module(module, qualified)}.{qualified}"


def is_carrier(frame: FrameType) -> bool:
    """Say whether the frame only hands a call on and says nothing about it."""
    return frame.f_code.co_name in _CARRIERS or is_dispatch(frame)


def is_dispatch(frame: FrameType) -> bool:
    """Say whether the frame is a part of torch's dispatch to modes and operators."""
    return frame.f_globals.get("__name__") in _DISPATCH


def public_module(module: str, name: str) -> str:
    """The shortest package that offers the same thing under the same name."""
    top = name.partition(".")[0]
    thing = getattr(sys.modules.get(module), top, None)
    while "." in module:
        parent = module.rpartition(".")[0]
        offered = getattr(sys.modules.get(parent), top, None)
        if offered is None or (thing is not None and offered is not thing):
            break
        module, thing = parent, offered
    return module


def _qualified(frame: FrameType) -> str:
    """``Class.method`` before Python 3.11, from the first argument."""
    name = frame.f_code.co_name
    names = frame.f_code.co_varnames
    owner: Any | None = None
    if frame.f_code.co_argcount and names[0] in ("self", "cls"):
        owner = frame.f_locals.get(names[0])
    if owner is None:
        return name
    kind = owner if isinstance(owner, type) else type(owner)
    for base in kind.__mro__:
        if name in base.__dict__:
            return f"{base.__qualname__}.{name}"
    return name
