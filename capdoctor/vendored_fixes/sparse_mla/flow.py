"""Follow statements with some tests decided: what do they return, and does anything come after?"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

Decide = Callable[[ast.expr], bool | None]


@dataclass(frozen=True)
class Flow:
    """``returned`` are the values that may be returned; ``goes_on`` whether the end is reached."""

    returned: tuple[ast.expr | None, ...] = ()
    goes_on: bool = True


def follow(statements: list[ast.stmt], decide: Decide) -> Flow:
    """Run a block in the mind; ``decide`` knows some tests, both ways are taken at the others."""
    returned: list[ast.expr | None] = []
    for statement in statements:
        flow = _of(statement, decide)
        returned += flow.returned
        if not flow.goes_on:
            return Flow(tuple(returned), goes_on=False)
    return Flow(tuple(returned))


def _of(statement: ast.stmt, decide: Decide) -> Flow:
    flow = Flow()
    match statement:
        case ast.Return(value=value):
            flow = Flow((value,), goes_on=False)
        case ast.Raise() | ast.Continue() | ast.Break():
            flow = Flow(goes_on=False)
        case ast.If(test=test, body=body, orelse=orelse):
            flow = _branches(decide(test), body, orelse, decide)
        case ast.With(body=body):
            flow = follow(body, decide)
        case ast.Match():
            flow = _of_match(statement, decide)
        case ast.For() | ast.AsyncFor() | ast.While() | ast.Try():
            flow = Flow(tuple(n.value for n in ast.walk(statement) if isinstance(n, ast.Return)))
    return flow


def _branches(
    value: bool | None,
    body: list[ast.stmt],
    orelse: list[ast.stmt],
    decide: Decide,
) -> Flow:
    taken = [body] if value is True else [orelse] if value is False else [body, orelse]
    flows = [follow(block, decide) for block in taken]
    returned = tuple(value for flow in flows for value in flow.returned)
    return Flow(returned, any(flow.goes_on for flow in flows))


def _of_match(statement: ast.Match, decide: Decide) -> Flow:
    flows: list[Flow] = []
    for test, case in zip(match_tests(statement), statement.cases, strict=True):
        value = decide(test)
        if value is not False:
            flows.append(follow(case.body, decide))
        if value is True:
            break
    else:
        flows.append(Flow())  # no case has to fit
    returned = tuple(value for flow in flows for value in flow.returned)
    return Flow(returned, any(flow.goes_on for flow in flows))


def match_tests(statement: ast.Match) -> list[ast.expr]:
    """Give each case of a ``match`` as the test that it makes; what is not simple stays open."""
    return [_test_of(statement.subject, case) for case in statement.cases]


def _test_of(subject: ast.expr, case: ast.match_case) -> ast.expr:
    test: ast.expr
    match case.pattern:
        case ast.MatchSingleton(value=True):
            test = subject
        case ast.MatchSingleton(value=False):
            test = ast.UnaryOp(ast.Not(), subject)
        case ast.MatchValue(value=value):
            test = ast.Compare(subject, [ast.Eq()], [value])
        case ast.MatchOr(patterns=patterns) if all(isinstance(p, ast.MatchValue) for p in patterns):
            values = [p.value for p in patterns if isinstance(p, ast.MatchValue)]
            test = ast.Compare(subject, [ast.In()], [ast.Tuple(values, ast.Load())])
        case ast.MatchAs(pattern=None):
            test = ast.Constant(value=True)
        case _:
            test = ast.Name("a_pattern_that_may_fit", ast.Load())
    return test if case.guard is None else ast.BoolOp(ast.And(), [test, case.guard])
