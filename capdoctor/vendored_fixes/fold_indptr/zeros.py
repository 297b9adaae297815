"""Make a zero on the device instead of on the host: ``zeros`` in the place of ``tensor``."""

from __future__ import annotations

import ast

import libcst as cst

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.fold_indptr.sites import Fold
from capdoctor.vendored_fixes.rewriting import Edit, Node
from capdoctor.vendored_fixes.source import last_name

_KINDS = {bool: "bool", int: "int64"}  # a float gives the default dtype both ways


def zeros_instead(fold: Fold, call: ast.Call) -> Edit:
    """Give the edit that turns ``torch.tensor([0], ...)`` into ``torch.zeros(1, ...)``.

    Raises:
        CannotDo: ``torch`` has no name there, the device is not among the arguments, or the data
            does not show its type.
    """
    owner, name = call.func, last_name(call.func) or ""
    given = {keyword.arg for keyword in call.keywords}
    is_method = name == "new_tensor"
    if not isinstance(owner, ast.Attribute) or not (is_method or "device" in given):
        raise _unknown(fold, call)
    dtype = None if "dtype" in given or is_method else _dtype(call.args[0])
    if dtype and ast.unparse(owner.value) != "torch":
        raise _unknown(fold, call)
    shape = "1" if isinstance(call.args[0], ast.List | ast.Tuple) else "()"
    made = cst.Name("new_zeros" if is_method else "zeros")

    def replace(module: cst.Module, node: Node) -> Node:
        del module
        old = cst.ensure_type(node, cst.Call)
        function = cst.ensure_type(old.func, cst.Attribute).with_changes(attr=made)
        data, *rest = old.args
        new = [data.with_changes(value=cst.parse_expression(shape)), *rest]
        if dtype:
            new.insert(1, _argument(f"dtype=torch.{dtype}").with_changes(comma=data.comma))
        return old.with_changes(func=function, args=new)

    return Edit(fold.source.span(call), (cst.Call,), replace)


def _argument(text: str) -> cst.Arg:
    return cst.ensure_type(cst.parse_expression(f"f({text})"), cst.Call).args[0]


def _dtype(data: ast.expr) -> str | None:
    """Give the dtype that torch infers from a literal; None where it is the default dtype."""
    items = data.elts if isinstance(data, ast.List | ast.Tuple) else [data]
    value = items[0].value if isinstance(items[0], ast.Constant) else 0
    return _KINDS.get(type(value))


def _unknown(fold: Fold, call: ast.Call) -> CannotDo:
    return CannotDo(
        f"{fold.source.path} line {call.lineno} makes a zero on the host in a way that this fix "
        "cannot spell anew.",
        "Nothing was written. Make it on the device: torch.zeros(1, dtype=..., device=...).",
    )
