"""Which edit each site needs. The smallest one wins: a longer test, else an ``if`` of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.guards import choose, extend_test, insert_before
from capdoctor.vendored_fixes.rewriting import Edit
from capdoctor.vendored_fixes.sparse_mla.conditions import piecewise_value
from capdoctor.vendored_fixes.sparse_mla.ordering import stand_in
from capdoctor.vendored_fixes.sparse_mla.sites import Kind, Site, State
from capdoctor.vendored_fixes.sparse_mla.streams import named_stream

RECORD_REMARK = "An event recorded in a captured graph segment cannot be waited on outside it."
WAIT_REMARK = "The event is not recorded in piecewise mode: wait for all of the compute stream."


def plan(site: Site, helper: str) -> Edit:
    """Give the edit that takes a site out of piecewise mode; ``helper`` is the test's name.

    Raises:
        CannotDo: the code around the site has a shape that this fix does not know.
    """
    test = f"{helper}()"
    if site.kind is Kind.RECORD:
        return _choose(site, test, None, RECORD_REMARK)
    if site.state is State.UNORDERED:
        return _order_first(site, test)
    for parent, first in _branches(site):
        return extend_test(site.source.span(parent), test, exclude=first)
    return _choose(site, test, stand_in(site), WAIT_REMARK)


def _choose(site: Site, test: str, other: str | None, remark: str) -> Edit:
    source = site.source
    statement = source.statement_of(site.call)
    if isinstance(statement, ast.Assign) and statement.value is site.call:
        whole = source.span(statement)  # a new event is made; without it the old one stays
        return choose(whole, whole, test, other, remark)
    alone = isinstance(statement, ast.Expr) and statement.value is site.call
    span = source.span(site.call)
    return choose(span if alone else (0, 0, 0, 0), span, test, other, remark)


def _branches(site: Site) -> Iterator[tuple[ast.If | ast.IfExp, bool]]:
    """Give the ``if`` or conditional whose two branches are this wait and its stand-in alone."""
    source = site.source
    inner: ast.AST = site.call
    parent = source.parents[inner]
    if isinstance(parent, ast.IfExp) and inner is not parent.test:
        first = inner is parent.body
        if _orders(site, parent.orelse if first else parent.body):
            yield parent, first
        return
    statement = source.parents.get(parent)
    if isinstance(parent, ast.Expr) and isinstance(statement, ast.If):
        first = statement.body == [parent]
        branches = (statement.body, statement.orelse)
        mine, other = branches if first else branches[::-1]
        if mine == [parent] and _is_only(site, other):
            yield statement, first


def _is_only(site: Site, block: list[ast.stmt]) -> bool:
    """Say whether the stand-in is all that ``block`` does."""
    match block:
        case [ast.Expr(value=value)]:
            return _orders(site, value)
    return False


def _orders(site: Site, node: ast.expr) -> bool:
    """Say whether ``node`` is a ``wait_stream`` of the stream that the site makes wait."""
    match node:
        case ast.Call(func=ast.Attribute(value=stream, attr="wait_stream")):
            if site.stream is None:
                return False
            resolve = site.scope.resolve
            named = named_stream(site.source, node, stream) or stream
            return ast.dump(resolve(named)) == ast.dump(resolve(site.stream))
    return False


def _order_first(site: Site, test: str) -> Edit:
    """Put the missing wait in front of the ``if`` that keeps the wait on the event out."""
    chain = [a for a in site.source.ancestors(site.call) if isinstance(a, ast.If)]
    for node in chain:
        if piecewise_value(site.scope, node.test) is not None:
            head = _head(site, node)
            code = f"if {test}:\n    {stand_in(site)}\n"
            return insert_before(site.source.span(head), code)
    raise CannotDo(
        f"{site.source.path} line {site.call.lineno}: the wait is skipped in piecewise mode "
        "and nothing takes its place, in a shape that this fix cannot complete.",
        "Nothing was written.",
    )


def _head(site: Site, node: ast.If) -> ast.If:
    """Climb from an ``elif`` to the ``if`` that it belongs to."""
    parent = site.source.parents[node]
    while isinstance(parent, ast.If) and parent.orelse == [node]:
        node, parent = parent, site.source.parents[parent]
    return node
