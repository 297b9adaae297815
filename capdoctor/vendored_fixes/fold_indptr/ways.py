"""The known ways to write the leading zero without a host copy."""

from __future__ import annotations

import ast
from enum import StrEnum

from capdoctor.vendored_fixes.fold_indptr.tensors import assignments, is_view, same_storage
from capdoctor.vendored_fixes.source import Function, last_name

_ON_DEVICE = {"zero_", "fill_"}
_JOINS = {"cat", "concat", "concatenate", "hstack"}
_ZEROS = {"zeros", "new_zeros", "zeros_like"}


class Way(StrEnum):
    """How the first element gets its value."""

    HOST_COPY = "host_copy"  # out[0] = 0
    HOST_BUILT = "host_built"  # torch.tensor([0], device=...)
    PAD = "pad"
    SLICE_FILL = "slice_fill"  # out[:1] = 0
    ON_DEVICE = "on_device"  # out[0].zero_(), out[:1].fill_(0)
    JOINED = "joined"  # cat or concat of zeros
    ZEROS = "zeros"  # allocated as zeros, only the rest is written
    OTHER_SCALAR = "other_scalar"  # another constant, or an index that is not a literal zero
    NO_STORE = "no_store"  # no element is written on its own
    NO_RESULT = "no_result"


def other_way(function: Function, names: frozenset[str]) -> tuple[Way, int]:
    """Recognise a way that needs no host copy; the most telling sign counts first."""
    nodes = list(ast.walk(function))
    for sign in (_pads, _sets_on_device, _fills_slice, _joins, _starts_from_zeros):
        for node in nodes:
            way = sign(node, names)
            if way is not None:
                return way, getattr(node, "lineno", function.lineno)
    gives = any(isinstance(node, ast.Return) and node.value is not None for node in nodes)
    return (Way.NO_STORE if gives else Way.NO_RESULT), function.lineno


def _pads(node: ast.AST, names: frozenset[str]) -> Way | None:
    del names
    return Way.PAD if _called(node) == "pad" else None


def _sets_on_device(node: ast.AST, names: frozenset[str]) -> Way | None:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=name)), attr=method)
        ) if name in names and method in _ON_DEVICE:
            return Way.ON_DEVICE
    return None


def _fills_slice(node: ast.AST, names: frozenset[str]) -> Way | None:
    for target, _ in assignments(node):
        match target:
            case ast.Subscript(value=base, slice=ast.Slice() as part):
                if is_view(base) and same_storage(base) & names and _is_first(part):
                    return Way.SLICE_FILL
    return None


def _joins(node: ast.AST, names: frozenset[str]) -> Way | None:
    del names
    return Way.JOINED if _called(node) in _JOINS else None


def _starts_from_zeros(node: ast.AST, names: frozenset[str]) -> Way | None:
    del names
    return Way.ZEROS if _called(node) in _ZEROS else None


def _called(node: ast.AST) -> str | None:
    return last_name(node.func) if isinstance(node, ast.Call) else None


def _is_first(part: ast.Slice) -> bool:
    match part:
        case ast.Slice(lower=None | ast.Constant(value=0), upper=ast.Constant(value=1)):
            return part.step is None
    return False
