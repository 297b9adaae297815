"""Local type inference: what an expression is, and on which side its memory lies."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from capdoctor.capture.static import infer_torch, values
from capdoctor.capture.static.scope import Scope
from capdoctor.capture.static.tables import matches, names
from capdoctor.capture.static.values import Value

_BUILTIN_PYTHON = {
    "len", "int", "float", "bool", "str", "round", "ord", "isinstance", "hasattr", "id", "type",
    "getattr_static", "callable", "repr", "math", "divmod", "issubclass", "any", "all",
}  # fmt: skip
_BUILTIN_SEQUENCE = {"list", "sorted", "range", "enumerate", "zip", "map", "filter", "set", "dict"}


def infer(node: ast.expr | None, scope: Scope) -> Value:
    """Give the value of the expression in this scope."""
    handler = _HANDLERS.get(type(node))
    return handler(node, scope) if handler is not None else values.UNKNOWN


def _constant(node: ast.Constant, scope: Scope) -> Value:
    del scope
    if isinstance(node.value, str):
        if node.value.startswith(("cuda", "hip")):
            return Value(kind="device", place="device", sure=values.INFERRED)
        if node.value == "cpu":
            return Value(kind="device", place="host", sure=values.INFERRED)
    return values.NONE if node.value is None else values.PYTHON


def _joined(node: ast.JoinedStr, scope: Scope) -> Value:
    first = node.values[0] if node.values else None
    if isinstance(first, ast.Constant) and str(first.value).startswith("cuda"):
        return Value(kind="device", place="device", sure=values.INFERRED)
    del scope
    return values.PYTHON


def _name(node: ast.Name, scope: Scope) -> Value:
    if node.id in scope.names:
        return scope.names[node.id]
    return values.UNKNOWN


def _attribute(node: ast.Attribute, scope: Scope) -> Value:  # noqa: PLR0911 - cases
    base = infer(node.value, scope)
    if base.kind == "tensor":
        if node.attr == "device":
            return Value(kind="device", place=base.place, sure=base.sure)
        if node.attr in names("python_attributes"):
            return values.PYTHON
        return base.like(base.ndim) if node.attr in names("tensor_attributes") else values.UNKNOWN
    if base.kind == "unknown" and node.attr == "device":
        # A field called device says where the code around it works.
        host = matches("host_name", ast.unparse(node.value))
        return Value(kind="device", place="host" if host else "device", sure=values.ASSUMED)
    if base.kind == "unknown" and node.attr in {"shape", "ndim", "dtype"}:
        return values.PYTHON
    found = scope.attribute(base, node.attr) if base.cls else values.UNKNOWN
    if found == values.UNKNOWN and matches("host_name", node.attr):
        return values.tensor("host", values.ASSUMED)
    return found


def _binary(node: ast.BinOp, scope: Scope) -> Value:
    left, right = infer(node.left, scope), infer(node.right, scope)
    if "sequence" in (left.kind, right.kind):
        return left if left.kind == "sequence" else right
    if "numpy" in (left.kind, right.kind) and "tensor" not in (left.kind, right.kind):
        return values.NUMPY
    result = values.mix(left, right)
    if result.kind == "tensor" and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return replace(result, boolean=left.boolean or right.boolean)
    return result


def _compare(node: ast.Compare, scope: Scope) -> Value:
    if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
        return values.PYTHON
    result = infer(node.left, scope)
    for other in node.comparators:
        value = infer(other, scope)
        if isinstance(other, ast.Constant) and isinstance(other.value, str | None):
            return values.PYTHON
        result = values.mix(result, value)
    if result.kind != "tensor":
        return values.PYTHON if result.kind == "python" else values.UNKNOWN
    return result.like(result.ndim, boolean=True)


def _boolean(node: ast.BoolOp, scope: Scope) -> Value:
    result = infer(node.values[0], scope)
    for other in node.values[1:]:
        result = values.join(result, infer(other, scope))
    return result


def _unary(node: ast.UnaryOp, scope: Scope) -> Value:
    value = infer(node.operand, scope)
    return values.PYTHON if isinstance(node.op, ast.Not) else value


def _if_expression(node: ast.IfExp, scope: Scope) -> Value:
    return values.join(infer(node.body, scope), infer(node.orelse, scope))


def _sequence(node: ast.expr, scope: Scope) -> Value:
    del node, scope
    return values.SEQUENCE


def _tuple(node: ast.Tuple, scope: Scope) -> Value:
    del node, scope
    return values.TUPLE


def _subscript(node: ast.Subscript, scope: Scope) -> Value:
    base = infer(node.value, scope)
    if base.kind == "tensor":
        return _indexed(base, node.slice, scope)
    if base.kind in {"python", "numpy"}:
        return base
    return values.UNKNOWN


def _indexed(base: Value, index: ast.expr, scope: Scope) -> Value:
    """Give ``base[index]``: integers take a dimension away, slices keep it, None adds one."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    ndim = base.ndim
    for part in parts:
        if isinstance(part, ast.Slice) or ndim is None:
            continue
        value = infer(part, scope)
        if value.none_only:
            ndim += 1
        elif value.kind == "python" and not _is_ellipsis(part):
            ndim -= 1
        elif not _is_ellipsis(part):
            ndim = None
    return base.like(ndim if ndim is None or ndim >= 0 else None, boolean=base.boolean)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _call(node: ast.Call, scope: Scope) -> Value:  # noqa: PLR0911 - cases
    dotted = scope.module.dotted(node.func)
    if dotted in _BUILTIN_PYTHON or dotted.startswith(("math.", "os.", "time.")):
        return values.PYTHON
    if dotted in _BUILTIN_SEQUENCE:
        return values.SEQUENCE
    if dotted in {"min", "max", "abs", "sum", "pow"}:
        return _builtin_reduction(node, scope)
    if dotted.startswith("numpy."):
        return values.NUMPY
    if dotted.startswith("torch."):
        return infer_torch.function(dotted, node, scope, infer)
    if isinstance(node.func, ast.Attribute):
        base = infer(node.func.value, scope)
        if base.kind in {"tensor", "numpy", "unknown"}:
            known = infer_torch.method(base, node, scope, infer)
            if known.kind != "unknown":
                return known
    return _local_call(dotted, node, scope)


def _builtin_reduction(node: ast.Call, scope: Scope) -> Value:
    result = infer(node.args[0], scope) if node.args else values.UNKNOWN
    for other in node.args[1:]:
        result = values.mix(result, infer(other, scope))
    return result if result.kind in {"python", "tensor"} else values.UNKNOWN


def _local_call(dotted: str, node: ast.Call, scope: Scope) -> Value:
    """Give what a function or method of this module is annotated to return."""
    if dotted in scope.returns:
        return scope.returns[dotted]
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id == "self" and scope.cls is not None:
        method = f"{scope.cls.name}.{node.func.attr}"  # type: ignore[attr-defined]
        return scope.returns.get(method, values.UNKNOWN)
    return Value(cls=dotted) if dotted in scope.module.classes else values.UNKNOWN


_HANDLERS: dict[type, Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.JoinedStr: _joined,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.IfExp: _if_expression,
    ast.List: _sequence,
    ast.ListComp: _sequence,
    ast.GeneratorExp: _sequence,
    ast.Dict: _sequence,
    ast.Set: _sequence,
    ast.Tuple: _tuple,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.NamedExpr: lambda node, scope: infer(node.value, scope),
    ast.Starred: lambda node, scope: infer(node.value, scope),
}
