"""The tests on the way to a node: enclosing branches, operands before it, earlier early exits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.vendored_fixes.source import Function, Source
from capdoctor.vendored_fixes.sparse_mla.flow import match_tests

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)

Test = tuple[ast.expr, bool]
"""A test and the value that it must have."""


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
        case ast.Match(cases=cases) if isinstance(child, ast.match_case):
            tests = match_tests(parent)[: cases.index(child) + 1]
            yield from ((test, False) for test in tests[:-1])
            yield tests[-1], True
        case ast.BoolOp():
            earlier = parent.values[: parent.values.index(child)]  # type: ignore[arg-type]
            yield from ((value, isinstance(parent.op, ast.And)) for value in earlier)
    for block in blocks(parent):
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


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Give the lists of statements that ``node`` holds."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
