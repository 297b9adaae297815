"""Events that one method records and another waits for, without asking how capture runs.

Between the segments of a piecewise capture such a wait meets an event that belongs to a graph
that is no longer captured: error 1, invalid argument.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.capture.static import values
from capdoctor.capture.static.modules import ClassFacts, Function
from capdoctor.capture.static.nodes import nodes_of
from capdoctor.capture.static.summary import Suspicion
from capdoctor.capture.static.tables import matches


def event_suspicions(facts: ClassFacts) -> dict[str, list[Suspicion]]:
    """Give, by method, the waits for an event that only another method records."""
    records = {name: set(_recorded(method)) for name, method in facts.methods.items()}
    found: dict[str, list[Suspicion]] = {}
    for name, method in facts.methods.items():
        elsewhere = {event for other in records if other != name for event in records[other]}
        for event, call in _unguarded_waits(method):
            if event in elsewhere - records[name]:
                hit = Suspicion(
                    "event-across-capture", call.lineno, ast.unparse(call), values.ASSUMED, False
                )
                found.setdefault(name, []).append(hit)
    return found


def _recorded(method: Function) -> Iterator[str]:
    """Give the fields of ``self`` whose events the method records without a piecewise test."""
    held = _held(method)
    for node in _unguarded(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            event: ast.expr | None = None
            if node.func.attr == "record":
                event = node.func.value
            elif node.func.attr == "record_event" and node.args:
                event = node.args[0]
            if field := _field(event, held):
                yield field


def _unguarded_waits(method: Function) -> Iterator[tuple[str, ast.Call]]:
    held = _held(method)
    for node in _unguarded(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            waits = node.func.attr == "wait_event" and bool(node.args)
            if waits and (field := _field(node.args[0], held)):
                yield field, node


def _own_attribute(node: ast.AST | None) -> str:
    """Give ``self.NAME`` as NAME, else an empty text."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "self" else ""
    return ""


def _field(event: ast.expr | None, held: dict[str, str]) -> str:
    """Give the field of ``self`` that the event is, or is kept in."""
    while isinstance(event, ast.Subscript):
        event = event.value
    if isinstance(event, ast.Name):
        return held.get(event.id, "")
    return _own_attribute(event)


def _held(method: Function) -> dict[str, str]:
    """Give the locals that come out of a field of ``self``: name -> field."""
    held: dict[str, str] = {}
    for node in nodes_of(method):
        if isinstance(node, ast.Assign):
            target, source = node.targets[0], node.value
        elif isinstance(node, ast.For):
            target, source = node.target, node.iter
        else:
            continue
        fields = [name for part in nodes_of(source) if (name := _own_attribute(part))]
        if len(fields) == 1:
            held |= {n.id: fields[0] for n in nodes_of(target) if isinstance(n, ast.Name)}
    return held


def _unguarded(method: Function) -> Iterator[ast.AST]:
    """Give the nodes of a method that no test on the capture mode stands before."""
    if any(matches("eager_decorator", ast.unparse(item)) for item in method.decorator_list):
        return
    yield from _walk(method.body)


def _walk(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        if isinstance(statement, ast.If) and _asks(statement.test):
            if statement.body and isinstance(statement.body[-1], ast.Return):
                return
            continue
        if isinstance(statement, ast.If | ast.With | ast.For | ast.While | ast.Try):
            yield from _walk(statement.body)
            yield from _walk(getattr(statement, "orelse", []))
        else:
            yield from nodes_of(statement)


def _asks(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return matches("piecewise_test", text) or matches("capturing_test", text)
