"""What torch's functions and tensor methods give back, for the local inference."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from capdoctor.capture.static import values
from capdoctor.capture.static.scope import Scope
from capdoctor.capture.static.tables import names
from capdoctor.capture.static.values import Place, Value

Infer = Callable[[ast.expr | None, Scope], Value]


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """Give the argument called ``name``, or None."""
    return next((word.value for word in node.keywords if word.arg == name), None)


def is_true(node: ast.expr | None) -> bool:
    """Say whether the argument is the constant True."""
    return isinstance(node, ast.Constant) and node.value is True


def device_of(node: ast.Call, scope: Scope, infer: Infer) -> tuple[Place, int]:
    """Give where a factory puts its tensor, and how sure that is."""
    argument = keyword(node, "device")
    if argument is None:
        return scope.default_place, values.ASSUMED
    value = infer(argument, scope)
    if value.kind == "device":
        return value.place, value.sure
    if value.none_only:
        return scope.default_place, values.ASSUMED
    # A device that is handed around by name is nearly always the accelerator.
    return "device", values.ASSUMED


def function(dotted: str, node: ast.Call, scope: Scope, infer: Infer) -> Value:  # noqa: PLR0911 - cases
    """Give the result of ``torch.NAME(...)``."""
    name = dotted.removeprefix("torch.")
    arguments = [infer(item, scope) for item in node.args]
    if name in names("factories") or name in names("from_host"):
        return _made(name, node, arguments, scope, infer)
    if name in names("like"):
        return _placed_like(arguments[0] if arguments else values.UNKNOWN, node, scope, infer)
    if name == "device":
        return arguments[0] if arguments and arguments[0].kind == "device" else _some_device()
    if name in names("python_methods") or name == "is_tensor":
        return values.PYTHON
    if name == "from_numpy":
        return values.tensor("host")
    if name.endswith(("Event", "Stream", "current_stream", "default_stream")):
        kind = "event" if name.endswith("Event") else "stream"
        return Value(kind=kind, sure=values.INFERRED)  # type: ignore[arg-type]
    if name.startswith(("cuda.", "distributed.", "version.", "backends.", "compiler.", "finfo")):
        return values.PYTHON if name.startswith(("cuda.", "compiler.")) else values.UNKNOWN
    return _combined(name.rpartition(".")[2], node, arguments)


def _some_device() -> Value:
    return Value(kind="device", place="device", sure=values.ASSUMED)


def _made(name: str, node: ast.Call, arguments: list[Value], scope: Scope, infer: Infer) -> Value:
    stays = name in {"as_tensor", "asarray"} and keyword(node, "device") is None
    if stays and arguments and arguments[0].kind == "tensor":
        return arguments[0]
    place, sure = device_of(node, scope, infer)
    boolean = "bool" in ast.unparse(keyword(node, "dtype") or ast.Constant(value=""))
    made = values.tensor(place, sure, _shape_dims(name, node, arguments), boolean=boolean)
    return replace(made, pinned=is_true(keyword(node, "pin_memory")))


def _shape_dims(name: str, node: ast.Call, arguments: list[Value]) -> int | None:
    if name in names("one_dimensional"):
        return 1
    shape = node.args if name in names("shape_first") else node.args[:1]
    if name == "full" or len(shape) == 1:
        first = shape[0] if shape else keyword(node, "size")
        if isinstance(first, ast.Tuple | ast.List):
            starred = any(isinstance(item, ast.Starred) for item in first.elts)
            return None if starred else len(first.elts)
        if name in names("from_host"):
            return 0 if isinstance(first, ast.Constant) else None
        counted = bool(arguments) and arguments[0].kind == "python" and _is_number(first)
        return 1 if counted else None
    if name in names("shape_first") and not any(isinstance(a, ast.Starred) for a in shape):
        return len(shape) or None
    return None


def _is_number(node: ast.expr | None) -> bool:
    """Say whether a Python value is surely one number and not a whole shape."""
    if isinstance(node, ast.Attribute):
        return node.attr != "shape"
    return node is not None


def _placed_like(model: Value, node: ast.Call, scope: Scope, infer: Infer) -> Value:
    if keyword(node, "device") is not None:
        place, sure = device_of(node, scope, infer)
        return values.tensor(place, sure, model.ndim)
    return model.like(model.ndim) if model.kind == "tensor" else values.UNKNOWN


def _combined(name: str, node: ast.Call, arguments: list[Value]) -> Value:
    tensors = [value for value in arguments if value.kind == "tensor"]
    if not tensors:
        return values.UNKNOWN
    strongest = max(tensors, key=lambda value: (value.place == "device", value.sure))
    return reduced(name, node, strongest, skip=1)


def reduced(name: str, node: ast.Call, base: Value, *, skip: int = 0) -> Value:
    """Give the result of an operation on ``base``; ``skip`` tensors stand before a dim."""
    rest = node.args[skip:]
    with_dim = bool(rest) or keyword(node, "dim") is not None or keyword(node, "axis") is not None
    if name in names("tuple_results") and (with_dim or name not in {"max", "min"}):
        return values.UNKNOWN if name in {"max", "min"} else Value(kind="tuple")
    if name in names("boolean_methods"):
        return base.like(base.ndim, boolean=True)
    if name in names("reductions"):
        return base.like(None if with_dim else 0, boolean=name in {"any", "all"})
    if name in names("same_shape_methods"):
        return base.like(base.ndim, boolean=name == "bool")
    keeps = base.boolean and name in names("keeps_values")
    if name in names("same_dims"):
        return base.like(base.ndim, boolean=keeps)
    return base.like(1 if name in names("flat_methods") else None, boolean=keeps)


def method(base: Value, node: ast.Call, scope: Scope, infer: Infer) -> Value:
    """Give the result of ``base.NAME(...)``; UNKNOWN where the name says nothing."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    plain = {"item": values.PYTHON, "tolist": values.SEQUENCE, "numpy": values.NUMPY}
    if name in plain and base.kind in {"tensor", "unknown"}:
        return plain[name]
    if name == "cpu":
        return replace(values.tensor("host", ndim=base.ndim), boolean=base.boolean)
    if base.kind == "numpy":
        return values.NUMPY
    if name == "cuda":
        return values.tensor("device", ndim=base.ndim)
    if base.kind == "unknown":
        return values.PYTHON if name in {"size", "dim", "numel", "stride"} else values.UNKNOWN
    return _tensor_method(name, base, node, scope, infer)


def _tensor_method(  # noqa: PLR0911 - cases
    name: str, base: Value, node: ast.Call, scope: Scope, infer: Infer
) -> Value:
    if name == "to":
        return _moved(base, node, scope, infer)
    if name == "pin_memory":
        return replace(base, pinned=True)
    if name in names("new_methods"):
        arguments = [infer(item, scope) for item in node.args]
        made = _made(name.removeprefix("new_"), node, arguments, scope, infer)
        given = keyword(node, "device") is not None
        return made if given else replace(made, place=base.place, sure=base.sure)
    if name == "new_tensor":
        return base.like(None)
    if name in names("python_methods"):
        return values.PYTHON
    if name == "view" and node.args and "dtype" in ast.unparse(node.args[0]):
        return base.like(base.ndim)
    if name in {"view", "reshape"} and not any(isinstance(a, ast.Starred) for a in node.args):
        one = len(node.args) == 1 and ast.unparse(node.args[0]) in {"-1", "(-1,)"}
        dims = 1 if one else len(node.args) if len(node.args) > 1 else None
        return base.like(dims, boolean=base.boolean)
    return reduced(name, node, base)


def _moved(base: Value, node: ast.Call, scope: Scope, infer: Infer) -> Value:
    target = keyword(node, "device") or (node.args[0] if node.args else None)
    value = infer(target, scope)
    if value.kind in {"device", "tensor"}:
        return values.tensor(value.place, value.sure, base.ndim, boolean=base.boolean)
    return base.like(base.ndim)
