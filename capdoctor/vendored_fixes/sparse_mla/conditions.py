"""Can a line run in piecewise mode? Three-valued: yes-or-maybe unless the code rules it out.

The tests on the way to a node (enclosing ``if``, ``and``, conditional expressions, earlier early
returns) are evaluated with "the forward pass runs in piecewise mode" set to true and everything
else unknown. A node is *barred* when one of those tests then has the wrong value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.vendored_fixes.source import Function, Source, last_name
from capdoctor.vendored_fixes.sparse_mla.scope import HELPER, Scope

EAGER_BREAK = "eager_break_during_capture"
MODE = "cudagraph_runtime_mode"
PIECEWISE = "PIECEWISE"
_AVAILABLE = "is_forward_context_available"
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)

Test = tuple[ast.expr, bool]


def barred(scope: Scope, node: ast.AST) -> bool:
    """Say whether the code keeps ``node`` from running in piecewise mode."""
    return any(
        (value := piecewise_value(scope, test)) is not None and value != needed
        for test, needed in tests_on_the_way(scope.source, node)
    )


def in_eager_break(scope: Scope, node: ast.AST) -> bool:
    """Say whether ``node`` sits in a function that runs eagerly between captured segments."""
    functions = [a for a in scope.source.ancestors(node) if isinstance(a, Function)]
    return any(_is_eager_break(d) for f in functions for d in f.decorator_list)


def _is_eager_break(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    return last_name(decorator) == EAGER_BREAK


def tests_on_the_way(source: Source, node: ast.AST) -> Iterator[Test]:
    """Give each test, and the value it must have, for ``node`` to run inside its function."""
    for parent in source.ancestors(node):
        yield from _tests_of(parent, node)
        if isinstance(parent, Function | ast.Lambda | ast.ClassDef):
            return
        node = parent


def _tests_of(parent: ast.AST, child: ast.AST) -> Iterator[Test]:
    match parent:
        case ast.If() | ast.While():
            if child in parent.body:
                yield parent.test, True
            elif child in parent.orelse:
                yield parent.test, False
        case ast.IfExp():
            if child is not parent.test:
                yield parent.test, child is parent.body
        case ast.BoolOp():
            earlier = parent.values[: parent.values.index(child)]  # type: ignore[arg-type]
            yield from ((value, isinstance(parent.op, ast.And)) for value in earlier)
    for block in _blocks(parent):
        if child in block:
            yield from _earlier(block[: block.index(child)])


def _earlier(statements: list[ast.stmt]) -> Iterator[Test]:
    """Give the tests of early exits: what is reached after them is what they did not stop."""
    for statement in statements:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                if _leaves(body):
                    yield test, False
                elif _leaves(orelse):
                    yield test, True
            case ast.Assert(test=test):
                yield test, True
            case ast.With(body=body):
                yield from _earlier(body)


def _leaves(block: list[ast.stmt]) -> bool:
    match block[-1:]:
        case [ast.If(body=body, orelse=orelse)]:
            return _leaves(body) and _leaves(orelse)
        case [last]:
            return isinstance(last, _LEAVES)
    return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def piecewise_value(scope: Scope, node: ast.expr, depth: int = 6) -> bool | None:
    """Evaluate ``node`` for a forward pass in piecewise mode; None where that does not decide."""
    if depth == 0:
        return None
    node = scope.resolve(node)
    answer: bool | None = None
    match node:
        case ast.Constant(value=value):
            answer = bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = piecewise_value(scope, operand, depth - 1)
            answer = None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            answer = _combine(op, [piecewise_value(scope, v, depth - 1) for v in values])
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            answer = _compare(scope.resolve(left), op, scope.resolve(right))
        case ast.Call() | ast.Attribute():
            answer = _call(scope, node, depth)
    return answer


def _combine(op: ast.boolop, values: list[bool | None]) -> bool | None:
    decides = isinstance(op, ast.Or)
    if decides in values:
        return decides
    return None if None in values else not decides


def _call(scope: Scope, node: ast.Call | ast.Attribute, depth: int) -> bool | None:
    """Know the helper, ``bool(...)``, and functions of the file that return one expression."""
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in scope.helper_names or name in {HELPER, _AVAILABLE}:
            return True
        if name == "bool" and len(node.args) == 1:
            return piecewise_value(scope, node.args[0], depth - 1)
    else:
        name = node.attr  # a property of the class may wrap the question
    answers = {
        piecewise_value(scope, result, depth - 1)
        for function in scope.functions.get(name or "", [])
        for result in [_only_result(function)]
        if result is not None
    }
    return answers.pop() if len(answers) == 1 else None


def _only_result(function: Function) -> ast.expr | None:
    body = [s for s in function.body if not _is_docstring(s)]
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            return value
    return None


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _compare(left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
    if isinstance(op, ast.Is | ast.IsNot) and _is_context(left) and _is_none(right):
        return isinstance(op, ast.IsNot)
    if _is_mode(right):
        left, right = right, left
    return _mode_compare(op, right) if _is_mode(left) else None


def _mode_compare(op: ast.cmpop, right: ast.expr) -> bool | None:
    match op, right:
        case ((ast.Eq() | ast.Is()), ast.Attribute(attr=name)):
            return name == PIECEWISE
        case ((ast.NotEq() | ast.IsNot()), ast.Attribute(attr=name)):
            return name != PIECEWISE
        case ((ast.In() | ast.NotIn()), (ast.Tuple() | ast.List() | ast.Set())):
            return (PIECEWISE in map(last_name, right.elts)) == isinstance(op, ast.In)
    return None


def _is_mode(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name == MODE
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]):
            return bool(name == MODE)
    return False


def _is_context(node: ast.expr) -> bool:
    name = last_name(node.func if isinstance(node, ast.Call) else node)
    return name is not None and name.endswith("forward_context")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
