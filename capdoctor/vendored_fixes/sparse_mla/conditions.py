"""Can a line run in piecewise mode? Three-valued: yes-or-maybe unless the code rules it out.

The tests on the way to a node (enclosing ``if``, ``and``, conditional expressions, earlier early
returns) are evaluated with "the forward pass runs in piecewise mode" set to true and everything
else unknown. A node is *barred* when one of those tests then has the wrong value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.vendored_fixes.source import Function, last_name
from capdoctor.vendored_fixes.sparse_mla.flow import follow
from capdoctor.vendored_fixes.sparse_mla.paths import Test, blocks, tests_on_the_way
from capdoctor.vendored_fixes.sparse_mla.scope import HELPER, Scope

MODE = "cudagraph_runtime_mode"
PIECEWISE = "PIECEWISE"
_AVAILABLE = "is_forward_context_available"


def barred(scope: Scope, node: ast.AST) -> bool:
    """Say whether the code keeps ``node`` from running in piecewise mode."""
    return any(
        (value := piecewise_value(scope, test)) is not None and value != needed
        for test, needed in tests_on_the_way(scope.source, node)
    ) or _comes_after_the_end(scope, node)


def _comes_after_the_end(scope: Scope, node: ast.AST) -> bool:
    """Say whether the statements before ``node`` always leave its block in piecewise mode."""
    for parent in scope.source.ancestors(node):
        for block in blocks(parent):
            if node in block:
                earlier = block[: block.index(node)]
                if not follow(earlier, lambda test: piecewise_value(scope, test)).goes_on:
                    return True
        if isinstance(parent, Function | ast.Lambda | ast.ClassDef):
            break
        node = parent
    return False


def excludes(scope: Scope, one: ast.AST, other: ast.AST) -> bool:
    """Say whether a test lets ``one`` run only where it keeps ``other`` from running."""
    needs, others = _needs(scope, one), _needs(scope, other)
    return any((test, not needed) in others for test, needed in needs)


def _needs(scope: Scope, node: ast.AST) -> set[tuple[str, bool]]:
    """Give what must hold for ``node`` to run, apart from what the mode decides."""
    atoms = [a for test in tests_on_the_way(scope.source, node) for a in _atoms(*test)]
    return {
        (ast.dump(scope.resolve(test)), needed)
        for test, needed in atoms
        if piecewise_value(scope, test) is None
    }


def _atoms(test: ast.expr, needed: bool) -> Iterator[Test]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _atoms(operand, not needed)
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) == needed:
            for value in values:
                yield from _atoms(value, needed)
        case _:
            yield test, needed


def in_eager_break(scope: Scope, node: ast.AST) -> bool:
    """Say whether ``node`` sits in a function that runs eagerly between captured segments."""
    functions = [a for a in scope.source.ancestors(node) if isinstance(a, Function)]
    return any(_is_eager_break(scope, d) for f in functions for d in f.decorator_list)


def _is_eager_break(scope: Scope, decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    return last_name(decorator) in scope.eager_break_names


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
        case ast.IfExp():
            taken = _taken(scope, node, depth)
            answer = None if taken is node else piecewise_value(scope, taken, depth - 1)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            left, right = (_taken(scope, side, depth) for side in (left, right))
            answer = _compare(left, op, right)
        case ast.Call() | ast.Attribute():
            answer = _call(scope, node, depth)
    return answer


def _taken(scope: Scope, node: ast.expr, depth: int) -> ast.expr:
    """Give the side of a conditional expression that counts in piecewise mode, if that is clear."""
    node = scope.resolve(node)
    while depth > 0 and isinstance(node, ast.IfExp):
        depth -= 1
        value = piecewise_value(scope, node.test, depth)
        if value is None:
            break
        node = scope.resolve(node.body if value else node.orelse)
    return node


def _combine(op: ast.boolop, values: list[bool | None]) -> bool | None:
    decides = isinstance(op, ast.Or)
    if decides in values:
        return decides
    return None if None in values else not decides


def _call(scope: Scope, node: ast.Call | ast.Attribute, depth: int) -> bool | None:
    """Know the helper, ``bool(...)``, and functions of the file that always return the same."""
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in scope.helper_names or name in {HELPER, _AVAILABLE}:
            return True
        if name == "bool" and len(node.args) == 1:
            return piecewise_value(scope, node.args[0], depth - 1)
    else:
        name = node.attr  # a property of the class may wrap the question
    answers = {_result(scope, function, depth) for function in scope.functions.get(name or "", [])}
    return answers.pop() if len(answers) == 1 else None


def _result(scope: Scope, function: Function, depth: int) -> bool | None:
    """Give what a function of the file returns in piecewise mode, if every way gives the same."""
    flow = follow(function.body, lambda test: piecewise_value(scope, test, depth - 1))
    if not any(isinstance(node, ast.Return) and node.value for node in ast.walk(function)):
        return None  # a stub that a subclass fills
    results = [*flow.returned, *([None] if flow.goes_on else [])]
    values = {False if r is None else piecewise_value(scope, r, depth - 1) for r in results}
    return values.pop() if len(values) == 1 else None


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
