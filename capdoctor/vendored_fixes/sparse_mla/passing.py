"""Functions of the file that wait on, or record, an event which they are given.

Such a helper may serve other events too, so it is the call that counts as the site.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from capdoctor.vendored_fixes.source import Function, last_name
from capdoctor.vendored_fixes.sparse_mla.scope import EVENT, Scope


@dataclass(frozen=True)
class Handed:
    """What a call makes a helper do with the event. ``stream`` is None for a record."""

    kind: Literal["record", "wait"]
    stream: ast.expr | None


def handed(scope: Scope, call: ast.Call) -> Handed | None:
    """Give what ``call`` lets a function of the file do with the event, if that is clear."""
    if not any(scope.is_event(value) for value in _values(call)):
        return None
    functions = scope.functions.get(last_name(call.func) or "", [])
    if len(functions) != 1:
        return None
    given = dict(_arguments(call, functions[0]))
    events = [name for name, value in given.items() if scope.is_event(value)]
    if len(events) != 1 or events[0] == EVENT:
        return None  # a parameter of that name is followed like the attribute
    found = set(_deeds(functions[0], events[0]))
    if len(found) != 1:
        return None
    kind, stream = found.pop()
    if kind == "record":
        return Handed("record", None)
    return Handed("wait", given[stream]) if stream in given else None


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _arguments(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]]
    is_method = isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
    yield from zip(names[1:] if is_method else names, call.args, strict=False)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg)


def _deeds(
    function: Function, event: str
) -> Iterator[tuple[Literal["record", "wait", "unknown"], str]]:
    """Give what ``function`` does with its parameter ``event``, and on which parameter."""
    for node in ast.walk(function):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=stream), attr="wait_event"),
                args=[ast.Name(id=name)],
            ) if name == event:
                yield "wait", stream
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="wait"),
                args=[ast.Name(id=stream)],
            ) if name == event:
                yield "wait", stream
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="wait")) if (
                name == event
            ):
                yield "unknown", ""
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="record")) if (
                name == event
            ):
                yield "record", ""
            case ast.Call(func=ast.Attribute(attr="record_event"), args=[ast.Name(id=name)]) if (
                name == event
            ):
                yield "record", ""
