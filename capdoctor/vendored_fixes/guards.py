"""Edits that make code run only where a test allows it; comments stay where they were."""

from __future__ import annotations

from typing import TypeVar

import libcst as cst

from capdoctor.vendored_fixes.rewriting import Edit, Node
from capdoctor.vendored_fixes.source import Span

_LOOSER_THAN_AND = (cst.IfExp, cst.Lambda, cst.NamedExpr)
_Expression = TypeVar("_Expression", bound=cst.BaseExpression)


def choose(statement: Span, call: Span, test: str, other: str | None, comment: str) -> Edit:
    """Run ``other`` (nothing, if None) where ``test`` holds and the call where it does not.

    A statement of its own becomes an ``if``; a call anywhere else a conditional expression.
    """

    def replace(module: cst.Module, node: Node) -> Node:
        if isinstance(node, cst.SimpleStatementLine):
            return _if_statement(module, node, test, other, comment)
        return _conditional(node, test, other)

    both = (cst.SimpleStatementLine, cst.Call)
    return Edit(statement, both, replace) if statement == call else Edit(call, (cst.Call,), replace)


def _if_statement(
    module: cst.Module, node: cst.SimpleStatementLine, test: str, other: str | None, comment: str
) -> cst.If:
    inner = node.with_changes(leading_lines=())
    lines = [*node.leading_lines, cst.EmptyLine(comment=cst.Comment(f"# {comment}"))]
    condition = _parse(module, test)
    if other is None:
        negated = cst.UnaryOperation(cst.Not(), condition)
        return cst.If(negated, cst.IndentedBlock([inner]), leading_lines=lines)
    instead = cst.SimpleStatementLine([cst.Expr(_parse(module, other))])
    return cst.If(
        condition,
        cst.IndentedBlock([instead]),
        orelse=cst.Else(cst.IndentedBlock([inner])),
        leading_lines=lines,
    )


def _conditional(node: Node, test: str, other: str | None) -> cst.IfExp:
    if not isinstance(node, cst.BaseExpression):
        raise TypeError(type(node).__name__)
    body = cst.parse_expression(other or "None")
    return parenthesized(cst.IfExp(cst.parse_expression(test), body, node))


def extend_test(span: Span, test: str, *, exclude: bool) -> Edit:
    """Add ``and not test`` (``exclude``) or ``or test`` to the ``if`` at ``span``."""

    def replace(module: cst.Module, node: Node) -> Node:
        if not isinstance(node, cst.If | cst.IfExp):
            raise TypeError(type(node).__name__)
        return node.with_changes(test=_joined(module, node.test, test, exclude))

    return Edit(span, (cst.If, cst.IfExp), replace)


def _joined(module: cst.Module, old: cst.BaseExpression, test: str, exclude: bool) -> Node:
    loose = isinstance(old, _LOOSER_THAN_AND) or (
        exclude and isinstance(old, cst.BooleanOperation) and isinstance(old.operator, cst.Or)
    )
    left = parenthesized(old) if loose and not old.lpar else old
    right = _parse(module, test)
    if exclude:
        return cst.BooleanOperation(left, cst.And(), cst.UnaryOperation(cst.Not(), right))
    return cst.BooleanOperation(left, cst.Or(), right)


def insert_before(span: Span, code: str) -> Edit:
    """Put a compound statement in front of the statement at ``span``, below its comments."""

    def replace(module: cst.Module, node: Node) -> cst.FlattenSentinel[Node]:
        statement = cst.parse_statement(code, config=module.config_for_parsing)
        lines = getattr(node, "leading_lines", ())
        first = statement.with_changes(leading_lines=lines)
        return cst.FlattenSentinel([first, node.with_changes(leading_lines=())])

    return Edit(span, (cst.If, cst.SimpleStatementLine), replace)


def parenthesized(node: _Expression) -> _Expression:
    """Put parentheses around an expression."""
    return node.with_changes(
        lpar=[cst.LeftParen(), *node.lpar], rpar=[*node.rpar, cst.RightParen()]
    )


def _parse(module: cst.Module, code: str) -> cst.BaseExpression:
    return cst.parse_expression(code, config=module.config_for_parsing)
