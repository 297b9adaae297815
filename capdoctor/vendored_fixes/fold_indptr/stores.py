"""What a function writes into, or makes of, a tensor from the host: one element at a time.

``out[0] = 0`` on a one-dimensional tensor has a target of no dimension. torch copies the scalar
there from pageable host memory; a target that has a dimension is filled on the device.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capdoctor.vendored_fixes.fold_indptr.tensors import (
    assignments,
    has_rows,
    is_view,
    literal,
    same_storage,
)
from capdoctor.vendored_fixes.source import Function, Source, last_name

_FROM_DATA = {"tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor"}
_MADE = {*_FROM_DATA, "zeros", "ones", "empty", "full"}


@dataclass(frozen=True)
class Store:
    """``target = value`` in ``statement``; ``is_zero`` says that it is a zero at index 0."""

    statement: ast.stmt
    target: ast.Subscript
    value: ast.expr
    is_zero: bool


def host_stores(source: Source, function: Function, names: frozenset[str]) -> list[Store]:
    """Give the stores of one element whose value comes from the host, in the file's order."""
    found = [
        Store(source.statement_of(target), target, value, _is_leading_zero(source, function, pair))
        for node in ast.walk(function)
        for pair in assignments(node)
        for target, value in [pair]
        if isinstance(target, ast.Subscript)
        and is_view(target.value)
        and same_storage(target.value) & names
        and not _is_part(target.slice)
        and not _is_on_device(value)
        and not _is_row(function, target)
    ]
    return sorted(found, key=lambda store: (store.target.lineno, store.target.col_offset))


def _is_leading_zero(source: Source, function: Function, pair: tuple[ast.expr, ast.expr]) -> bool:
    target, value = pair
    return (
        isinstance(target, ast.Subscript)
        and _is_first(source, function, target.slice)
        and is_zero(source, function, value)
    )


def _is_first(source: Source, function: Function, index: ast.expr) -> bool:
    """Say whether ``index`` is 0, alone or with an ellipsis that stands for no dimension."""
    if isinstance(index, ast.Tuple):
        kept = [part for part in index.elts if not _is_ellipsis(part)]
        return len(kept) == 1 and _is_first(source, function, kept[0])
    value = literal(source, function, index)
    return value == 0 and isinstance(value, int) and not isinstance(value, bool)


def is_zero(source: Source, function: Function, value: ast.expr) -> bool:
    """Say whether ``value`` is a zero of the host: a number, or a tensor made without a device."""
    match value:
        case ast.Call(func=made, args=[data, *_]) if last_name(made) in _MADE:
            return last_name(made) == "zeros" or literal(source, function, data) == 0
    return literal(source, function, value) == 0


def _is_part(index: ast.expr) -> bool:
    """Say whether an index selects several elements: a slice, a mask, a computed tensor."""
    if isinstance(index, ast.Tuple):
        return any(isinstance(p, ast.Slice) or _is_new_axis(p) for p in index.elts)
    if isinstance(index, ast.Call):
        return not (isinstance(index.func, ast.Name) and index.func.id == "int")
    return isinstance(index, ast.Slice | ast.Compare)


def _is_row(function: Function, target: ast.Subscript) -> bool:
    """A row has a dimension, so a scalar fills it."""
    is_one = not isinstance(target.slice, ast.Tuple)
    return is_one and isinstance(target.value, ast.Name) and has_rows(function, target.value.id)


def _is_new_axis(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and index.value is None


def _is_ellipsis(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and index.value is ...


def _is_on_device(value: ast.expr) -> bool:
    """Say whether ``value`` is computed from tensors, or made on a device that it names."""
    for node in ast.walk(value):
        match node:
            case ast.Subscript():
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch")) | ast.Name()):
                if any(keyword.arg == "device" for keyword in node.keywords):
                    return True
            case ast.Call(func=ast.Attribute()):
                return True
    return False


def host_built(source: Source, function: Function) -> Iterator[ast.Call]:
    """Give calls that build a zero on the host and copy it: ``torch.tensor([0], device=...)``."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=made, args=[data]) if last_name(made) in _FROM_DATA:
                if _is_zero_data(source, function, data) and _goes_to_device(source, node):
                    yield node


def _is_zero_data(source: Source, function: Function, data: ast.expr) -> bool:
    items = data.elts if isinstance(data, ast.List | ast.Tuple) else [data]
    return len(items) == 1 and literal(source, function, items[0]) == 0


def _goes_to_device(source: Source, call: ast.Call) -> bool:
    """Say whether a tensor of host data is copied; a scalar tensor is filled where it lies."""
    name = last_name(call.func)
    devices = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    if name == "new_tensor" or devices:
        is_host = any(isinstance(d, ast.Constant) and d.value == "cpu" for d in devices)
        return name != "scalar_tensor" and not is_host
    outer = source.parents[call]
    return isinstance(outer, ast.Attribute) and outer.attr in {"to", "cuda", "type_as"}
