"""Recognise allocate, store zero, store the rest: what one ``pad`` can take the place of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from capdoctor.vendored_fixes.fold_indptr.sites import Fold
from capdoctor.vendored_fixes.source import last_name

_ALLOCATIONS = {"empty", "zeros", "new_empty", "new_zeros", "empty_like", "zeros_like"}
_LIKE = {"empty_like", "zeros_like"}
PAD = "nn.functional.pad"
_REST_OF_THE_WAY = {
    "torch": f".{PAD}",
    "torch.nn": ".functional.pad",
    "torch.nn.functional": ".pad",
    "torch.nn.functional.pad": "",
}
_CASTS = {"to", "type", "type_as", "int", "long", "contiguous"}


@dataclass(frozen=True)
class Padded:
    """The three statements, and what the pad needs to know.

    ``dtype`` is the expression of the result's type; ``cast`` says whether ``rest`` has it
    already. ``pad`` is how the file can spell ``torch.nn.functional.pad``.
    """

    allocation: ast.Assign | ast.AnnAssign
    zero: ast.Assign
    rest: ast.Assign
    dtype: str
    is_cast: bool
    pad: str


def find_pattern(fold: Fold) -> Padded | None:
    """Give the pattern if a pad surely gives the same tensor; None where it might not."""
    zero, pad = _plain_store(fold), _pad_spelling(fold)
    if zero is None or pad is None:
        return None
    block = fold.source.block_of(zero)
    allocation = next((s for s in block if _allocates(s, fold.name)), None)
    rest = next((s for s in block if _stores_rest(s, fold.name)), None)
    if not isinstance(allocation, ast.Assign | ast.AnnAssign) or not isinstance(rest, ast.Assign):
        return None
    three = (allocation, zero, rest)
    dtype = _dtype(allocation.value)
    if dtype is None or not _may_be_joined(fold, block, three) or not _bound_once(fold, allocation):
        return None
    between = block[block.index(allocation) : block.index(rest)]
    if _rebinds(between, dtype):
        return None
    if not _is_running_sum(fold, rest.value) or _mentions(rest.value, fold.name):
        return None
    return Padded(allocation, zero, rest, dtype, _casts_to(rest.value, dtype), pad)


def _plain_store(fold: Fold) -> ast.Assign | None:
    """Give ``name[0] = 0`` as it is usually written: one target, a literal zero."""
    match fold.store.statement if fold.store else None:
        case (
            ast.Assign(
                targets=[ast.Subscript(value=ast.Name())], value=ast.Constant(value=int() | float())
            ) as zero
        ):
            return zero
    return None


def _rebinds(statements: list[ast.stmt], dtype: str) -> bool:
    """Say whether a name in the dtype's expression may mean something else at the last place."""
    names = {n.id for n in ast.walk(ast.parse(dtype)) if isinstance(n, ast.Name)}
    return any(
        isinstance(node, ast.Name) and node.id in names and not isinstance(node.ctx, ast.Load)
        for statement in statements
        for node in ast.walk(statement)
    )


def _may_be_joined(fold: Fold, block: list[ast.stmt], three: tuple[ast.stmt, ...]) -> bool:
    """Say whether the three can become one at the last place, with nothing changed in between."""
    places = [block.index(statement) for statement in three]
    allocation, zero, rest = places
    others = [s for s in block[min(places) : max(places)] if s not in three]
    return (
        allocation == min(places)
        and (rest > zero or zero == rest + 1)
        and not any(_mentions(other, fold.name) for other in others)
        and all(_alone_on_its_lines(fold, block, statement) for statement in three)
    )


def _alone_on_its_lines(fold: Fold, block: list[ast.stmt], statement: ast.stmt) -> bool:
    parent = fold.source.parents[statement]
    neighbours = [s.lineno for s in block if s is not statement]
    return statement.lineno not in [*neighbours, getattr(parent, "lineno", 0)]


def _allocates(statement: ast.stmt, name: str | None) -> bool:
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=target)], value=value)
            | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
        ):
            function = last_name(value.func) if isinstance(value, ast.Call) else None
            return target == name and function in _ALLOCATIONS
    return False


def _stores_rest(statement: ast.stmt, name: str | None) -> bool:
    match statement:
        case ast.Assign(
            targets=[
                ast.Subscript(
                    value=ast.Name(id=target),
                    slice=ast.Slice(lower=ast.Constant(value=1), upper=None, step=None),
                )
            ]
        ):
            return target == name
    return False


def _bound_once(fold: Fold, allocation: ast.stmt) -> bool:
    stores = [
        node
        for node in ast.walk(fold.function)
        if isinstance(node, ast.Name) and node.id == fold.name and isinstance(node.ctx, ast.Store)
    ]
    return len(stores) == 1 and fold.source.statement_of(stores[0]) is allocation


def _mentions(node: ast.AST, name: str | None) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _dtype(allocation: ast.expr | None) -> str | None:
    """Give the expression of the allocation's dtype; None if its device may be another one."""
    if not isinstance(allocation, ast.Call):
        return None
    named = {k.arg: k.value for k in allocation.keywords if k.arg}
    tensor = _model(allocation)
    if tensor is None and "device" not in named:
        return None
    if "dtype" in named:
        return ast.unparse(named["dtype"])
    return f"{tensor}.dtype" if tensor else None


def _model(allocation: ast.Call) -> str | None:
    """Give the tensor whose dtype and device an allocation takes over."""
    name = last_name(allocation.func)
    if name in _LIKE and allocation.args:
        return ast.unparse(allocation.args[0])
    if name in {"new_empty", "new_zeros"} and isinstance(allocation.func, ast.Attribute):
        tensor = ast.unparse(allocation.func.value)
        return None if tensor == "torch.Tensor" else tensor
    return None


def _is_running_sum(fold: Fold, value: ast.expr) -> bool:
    """Say whether ``value`` is a cumsum, so that its length is that of the slice it goes to."""
    for _ in range(8):
        match value:
            case ast.Call(func=function) if last_name(function) == "cumsum":
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _CASTS:
                value = inner
            case ast.Name(id=name):
                found = _values(fold, name)
                if len(found) != 1:
                    return False
                value = found[0]
            case _:
                return False
    return False


def _values(fold: Fold, name: str) -> list[ast.expr]:
    found: list[ast.expr] = []
    for node in ast.walk(fold.function):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=value)
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
            ) if target == name:
                found.append(value)
    return found


def _casts_to(value: ast.expr, dtype: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr="to"), args=[kind], keywords=[]):
            return ast.unparse(kind) == dtype
        case ast.Call(func=ast.Attribute(attr="to"), args=[], keywords=[ast.keyword(arg="dtype")]):
            return ast.unparse(value.keywords[0].value) == dtype
        case ast.Call(func=ast.Attribute(attr="type_as"), args=[other]):
            return f"{ast.unparse(other)}.dtype" == dtype
    return False


def _pad_spelling(fold: Fold) -> str | None:
    """Give how the function can call pad with the names that it has; plain ``torch`` first."""
    imports = [
        node
        for node in [*fold.source.tree.body, *fold.function.body]
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    hidden = _locals(fold)
    spellings = [
        spelling
        for node in imports
        for spelling in _spellings(node)
        if spelling.partition(".")[0] not in hidden
    ]
    return min(spellings, key=lambda s: not s.startswith("torch."), default=None)


def _locals(fold: Fold) -> set[str]:
    """Give the parameters and the assigned names of the function, which hide imports."""
    nodes = list(ast.walk(fold.function))
    parameters = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return parameters | {
        n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }


def _spellings(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        name = alias.asname or alias.name
        origin = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        plain = isinstance(node, ast.Import) and not alias.asname
        if plain and origin.partition(".")[0] == "torch":
            yield f"torch.{PAD}"
        elif origin in _REST_OF_THE_WAY:
            yield f"{name}{_REST_OF_THE_WAY[origin]}"
