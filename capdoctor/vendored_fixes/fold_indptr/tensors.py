"""Which names of a function stand for tensors that leave it, and what an expression is worth."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.vendored_fixes.source import Function, Source, last_name

_VIEWS = {"contiguous", "view", "view_as", "reshape", "flatten", "ravel", "narrow", "detach"}
_COPIES = {"to", "int", "long", "clone"}
_VIEW_ATTRIBUTES = {"data", "T", "mT"}
_BY_SHAPE = {"empty", "zeros", "ones", "new_empty", "new_zeros", "new_ones"}
_HOST_MODULES = {"np", "numpy", "array"}


def tensor_names(function: Function) -> frozenset[str]:
    """Give the names in what is returned, and those that share memory with them either way.

    Lists and NumPy arrays are no tensors: their elements are written on the host.
    """
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value]
    names = {n.id for value in returns for n in ast.walk(value) if isinstance(n, ast.Name)}
    bound = list(bindings(function))
    for _ in range(4):  # a chain of views is not longer
        for name, value in bound:
            if name in names:
                names |= same_storage(value)
            elif same_storage(value) & names:
                names.add(name)
    return frozenset(names - {name for name, value in bound if _is_on_host(value)})


def bindings(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Give each name with the value that an assignment in the function gives it."""
    for node in ast.walk(function):
        for target, value in assignments(node):
            if isinstance(target, ast.Name):
                yield target.id, value


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give target and value of an assignment, of each one in ``a = b = v`` and ``a, b = v, w``."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
        ):
            yield target, value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, value:
        case (ast.Tuple(elts=targets), (ast.Tuple(elts=values) | ast.List(elts=values))) if len(
            targets
        ) == len(values):
            for one, other in zip(targets, values, strict=True):
                yield from _pairs(one, other)
        case _:
            yield target, value


def same_storage(value: ast.expr) -> set[str]:
    """Give the names that ``value`` is a view or a cast of (``out.contiguous()``, ``out[:n]``)."""
    while True:
        match value:
            case ast.Name(id=name):
                return {name}
            case ast.NamedExpr(value=inner) | ast.Subscript(value=inner):
                value = inner
            case ast.Attribute(value=inner, attr=name) if name in _VIEW_ATTRIBUTES:
                value = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _VIEWS | _COPIES:
                value = inner
            case ast.IfExp(body=body, orelse=orelse):
                return same_storage(body) | same_storage(orelse)
            case _:
                return set()


def is_view(value: ast.expr) -> bool:
    """Say whether a store into ``value`` reaches the tensor that it is made of."""
    match value:
        case ast.Name():
            return True
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return is_view(inner)
        case ast.Attribute(value=inner, attr=name) if name in _VIEW_ATTRIBUTES:
            return is_view(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _VIEWS:
            return is_view(inner)
    return False


def _is_on_host(value: ast.expr) -> bool:
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.BinOp(left=left, right=right):
            return _is_on_host(left) or _is_on_host(right)
        case ast.Call(func=ast.Name(id="list")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in _HOST_MODULES:
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in {"tolist", "numpy"}
    return False


def has_rows(function: Function, name: str) -> bool:
    """Say whether ``name`` is allocated with several dimensions: ``name[0]`` is a row then."""
    found = [value for target, value in bindings(function) if target == name]
    return bool(found) and all(_is_of_several_dimensions(value) for value in found)


def _is_of_several_dimensions(allocation: ast.expr) -> bool:
    match allocation:
        case ast.Call(func=made, args=[shape, *others]) if last_name(made) in _BY_SHAPE:
            sizes = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape, *others]
            return len(sizes) > 1
    return False


def literal(source: Source, function: Function, node: ast.expr, depth: int = 4) -> object:
    """Give the number that ``node`` certainly is; None where that is not certain."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.UnaryOp(op=op, operand=operand):
            return _signed(op, literal(source, function, operand, depth))
        case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[only], keywords=[]):
            return literal(source, function, only, depth)
        case ast.Name(id=name) if depth:
            given = _only_value(source, function, name)
            return None if given is None else literal(source, function, given, depth - 1)
    return None


def _signed(op: ast.unaryop, value: object) -> object:
    if not isinstance(value, int | float):
        return None
    match op:
        case ast.USub():
            return -value
        case ast.UAdd():
            return value
    return None


def _only_value(source: Source, function: Function, name: str) -> ast.expr | None:
    """Give the one value that a local, or else a global, ever gets."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if any(parameter.arg == name for parameter in parameters):
        return None
    inside = [n for n in ast.walk(function) if _stores(n, name)]
    stores = inside or [n for n in source.nodes if _stores(n, name)]
    if len(stores) != 1:
        return None
    statement = source.statement_of(stores[0])
    found = [value for target, value in assignments(statement) if target is stores[0]]
    return found[0] if found and (inside or statement in source.tree.body) else None


def _stores(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
