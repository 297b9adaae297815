"""Uses of the event that nobody can follow: it is handed on, kept elsewhere, or called later.

They matter when the record is about to go in piecewise mode: a wait that was not seen would then
be a wait on an event that was never recorded, which torch skips silently.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from capdoctor.vendored_fixes.source import last_name
from capdoctor.vendored_fixes.sparse_mla.scope import EVENT, Scope

_DEEDS = {"record", "wait", "query", "synchronize", "elapsed_time"}
_HARMLESS = {"isinstance", "id", "print", "repr", "str", "bool", "hasattr", "type", "len"}
_PASSED_UP = (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.Starred, ast.Subscript)
_TESTS = (
    ast.Compare,
    ast.UnaryOp,
    ast.If,
    ast.IfExp,
    ast.While,
    ast.Assert,
    ast.Delete,
    ast.FormattedValue,
    ast.Expr,
)


def unknown_uses(
    scope: Scope, sites: Collection[ast.Call], receivers: Collection[str]
) -> Iterator[ast.expr]:
    """Give each use whose end is not known.

    ``sites`` are the calls that are known, ``receivers`` the functions and classes of the tree
    that take the event under its own name.
    """
    for node in scope.source.nodes:
        if not isinstance(node, ast.Attribute | ast.Call | ast.Name) or not _reads(scope, node):
            continue
        if not _is_known(scope, node, sites, receivers):
            yield node


def receivers_of(scope: Scope) -> Iterator[str]:
    """Give the functions and classes of a file that have a parameter or field for the event."""
    for node in scope.source.nodes:
        match node:
            case ast.arg(arg=name) if name == EVENT:
                function = scope.source.function_of(node)
                owner = scope.source.parents.get(function) if function else None
                is_init = function is not None and function.name == "__init__"
                if is_init and isinstance(owner, ast.ClassDef):
                    yield owner.name
                elif function is not None:
                    yield function.name
            case ast.ClassDef(name=name, body=body):
                if any(isinstance(s, ast.AnnAssign) and _is_field(s.target) for s in body):
                    yield name


def _is_field(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == EVENT


def _reads(scope: Scope, node: ast.expr) -> bool:
    is_written = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
    return not is_written and scope.is_event(node)


def _is_known(
    scope: Scope, node: ast.expr, sites: Collection[ast.Call], receivers: Collection[str]
) -> bool:
    """Follow the value of ``node`` outwards until it ends somewhere."""
    child: ast.AST = node
    parent = scope.source.parents[child]
    while isinstance(parent, _PASSED_UP) and not _is_test_of(parent, child):
        child, parent = parent, scope.source.parents[parent]
    match parent:
        case ast.Attribute(attr=name):
            known = name not in _DEEDS or scope.source.parents[parent] in sites
        case ast.Call():
            known = parent in sites or last_name(parent.func) in {*_HARMLESS, *receivers}
        case ast.keyword(arg=name):
            known = name == EVENT or scope.source.parents[parent] in sites
        case ast.Return():
            function = scope.source.function_of(parent)
            known = function is not None and function.name == EVENT
        case _:
            known = isinstance(parent, _TESTS) or _is_kept(scope, parent, child)
    return known


def _is_kept(scope: Scope, parent: ast.AST, child: ast.AST) -> bool:
    """Say whether the event only gets a name or a place that is followed."""
    match parent:
        case ast.Assign() | ast.AnnAssign():
            return _is_followed(parent)
        case ast.Tuple() | ast.List():
            return _is_unpacked(scope, parent)
        case ast.Dict(keys=keys, values=values):
            return any(v is child and _is_event_key(k) for k, v in zip(keys, values, strict=True))
    return False


def _is_test_of(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.IfExp) and child is parent.test


def _is_followed(node: ast.Assign | ast.AnnAssign) -> bool:
    """Say whether every target is a local, or keeps the event under its own name."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return all(
        isinstance(target, ast.Name)
        or (isinstance(target, ast.Attribute) and target.attr == EVENT)
        or (isinstance(target, ast.Subscript) and _is_event_key(target.slice))
        for target in targets
    )


def _is_unpacked(scope: Scope, node: ast.Tuple | ast.List) -> bool:
    """Say whether ``a, b = x, y`` or ``for a in (x, y)`` names each element."""
    match scope.source.parents[node]:
        case ast.Assign(targets=[ast.Tuple() | ast.List() as names]):
            return len(names.elts) == len(node.elts) and all(
                isinstance(name, ast.Name) for name in names.elts
            )
        case ast.Assign() | ast.AnnAssign() as statement:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            return all(isinstance(t, ast.Attribute) and t.attr == EVENT for t in targets)
        case ast.For(target=ast.Name(), iter=iterated):
            return iterated is node
        case ast.keyword(arg=name):
            return name == EVENT
    return False


def _is_event_key(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == EVENT
