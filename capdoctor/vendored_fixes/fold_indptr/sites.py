"""Find how each ``_fold_seqlen_indptr`` writes the leading zero of what it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capdoctor.vendored_fixes.fold_indptr.ways import Way, other_way
from capdoctor.vendored_fixes.source import Function, Source

FUNCTION = "_fold_seqlen_indptr"
_SAME = {"contiguous", "view", "reshape", "flatten", "to", "int", "long", "clone", "detach"}


@dataclass(frozen=True)
class Fold:
    """One definition. ``zero`` is the store of the leading zero, ``name`` what it writes to."""

    source: Source
    function: Function
    way: Way
    name: str | None = None
    zero: ast.Assign | None = None
    line: int = 0


def find_folds(source: Source) -> list[Fold]:
    """Give every leading-zero store of every definition, or the way that has no such store.

    Definitions count wherever they are: in a class, in another function, in an ``if``.
    """
    functions = [
        node for node in source.nodes if isinstance(node, Function) and node.name == FUNCTION
    ]
    functions.sort(key=lambda function: function.lineno)
    return [fold for function in functions for fold in _folds(source, function)]


def _folds(source: Source, function: Function) -> list[Fold]:
    returned = _returned_names(function)
    found = [
        Fold(source, function, Way.HOST_COPY, name, statement, statement.lineno)
        for statement in _statements(function)
        if isinstance(statement, ast.Assign) and (name := _zero_store(statement, returned))
    ]
    if found:
        return found
    for statement in _statements(function):
        if _scalar_store(statement, returned):
            return [Fold(source, function, Way.OTHER_SCALAR, line=statement.lineno)]
    way, line = other_way(function, returned)
    return [Fold(source, function, way, line=line)]


def _statements(function: Function) -> Iterator[ast.stmt]:
    found = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    yield from sorted(found, key=lambda node: node.lineno)


def _returned_names(function: Function) -> set[str]:
    """Give the names whose tensor leaves the function, with the names that they come from."""
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value]
    names = {name for value in returns for part in _parts(value) for name in _same_storage(part)}
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for _ in range(4):
        for node in assigned:
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target in names:
                    names |= _same_storage(value)
    lists = {
        target.id
        for node in assigned
        for target in node.targets
        if isinstance(target, ast.Name) and _is_list(node.value)
    }
    return names - lists


def _parts(value: ast.expr) -> list[ast.expr]:
    """Give what a return may hand out: the elements of a tuple, the sides of a conditional."""
    match value:
        case ast.Tuple(elts=elements):
            return list(elements)
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
    return [value]


def _is_list(value: ast.expr) -> bool:
    """Say whether ``value`` is a list of Python's, which is no tensor."""
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.BinOp(left=left, right=right):
            return _is_list(left) or _is_list(right)
        case ast.Call(func=ast.Name(id="list")):
            return True
    return False


def _same_storage(value: ast.expr) -> set[str]:
    """Give the name that ``value`` is a view or a cast of (``out.contiguous()``, ``out[:n]``)."""
    while True:
        match value:
            case ast.Name(id=name):
                return {name}
            case ast.Subscript(value=inner):
                value = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _SAME:
                value = inner
            case _:
                return set()


def _zero_store(statement: ast.stmt, names: set[str]) -> str | None:
    """Give the name in ``name[0] = 0``; the constant may be ``0``, ``0.0`` or ``False``."""
    match statement:
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=name), slice=index)],
            value=ast.Constant(value=int() | float() as value),
        ):
            if name in names and value == 0 and _is_zero_index(index):
                return name
    return None


def _is_zero_index(index: ast.expr) -> bool:
    match index:
        case ast.Constant(value=int() as value):
            return value == 0 and not isinstance(value, bool)
        case ast.Tuple(elts=[only]):
            return _is_zero_index(only)
    return False


def _scalar_store(statement: ast.stmt, names: set[str]) -> bool:
    """Say whether one element is written from the host: another constant or another index."""
    match statement:
        case ast.Assign(targets=targets):
            return any(
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Name)
                and target.value.id in names
                and not _is_part(target.slice)
                for target in targets
            )
    return False


def _is_part(index: ast.expr) -> bool:
    """Say whether an index selects several elements: a slice, a mask, a computed tensor."""
    if isinstance(index, ast.Tuple):
        return any(isinstance(part, ast.Slice) for part in index.elts)
    return isinstance(index, ast.Slice | ast.Compare | ast.Call)
