"""Find where the logical top-k event is recorded and where it is waited on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from capdoctor.vendored_fixes.source import Function, Source
from capdoctor.vendored_fixes.sparse_mla.conditions import barred, in_eager_break
from capdoctor.vendored_fixes.sparse_mla.scope import Scope

LEADER = "SparseMLAIndexGroup"
_METHODS = {"record", "record_event", "wait", "wait_event"}


class Kind(StrEnum):
    """The two halves of the pair."""

    RECORD = "record"
    WAIT = "wait"


class State(StrEnum):
    """How a site behaves in piecewise mode."""

    PLAIN = "plain"  # it runs
    GUARDED = "guarded"  # it does not run; a wait has its stand-in
    EAGER = "eager"  # it runs, in a function that breaks out of the captured segment
    UNORDERED = "unordered"  # a wait does not run, and nothing takes its place


@dataclass(frozen=True)
class Site:
    """One call. ``stream`` is the waiting stream, None where it is the current one."""

    scope: Scope
    call: ast.Call
    kind: Kind
    stream: ast.expr | None
    state: State

    @property
    def source(self) -> Source:
        """The file that the call stands in."""
        return self.scope.source


def defines_group(source: Source) -> bool:
    """Say whether the file defines the index group, which is what this fix is about."""
    return any(isinstance(n, ast.ClassDef) and n.name == LEADER for n in source.nodes)


def find_sites(source: Source) -> list[Site]:
    """Give every record of and every wait on the event, in the order of the file."""
    scope = Scope(source)
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    sites = (_site(scope, call) for call in calls)
    return [site for site in sites if site is not None]


def _site(scope: Scope, call: ast.Call) -> Site | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _METHODS:
        return None
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    of_event = scope.is_event(call.func.value)
    takes_event = any(scope.is_event(argument) for argument in arguments)
    match call.func.attr:
        case "record" if of_event:
            return Site(scope, call, Kind.RECORD, None, _record_state(scope, call))
        case "record_event" if takes_event:
            return Site(scope, call, Kind.RECORD, None, _record_state(scope, call))
        case "wait_event" if takes_event:
            stream: ast.expr | None = call.func.value
        case "wait" if of_event:
            stream = arguments[0] if arguments else None
        case _:
            return None
    return Site(scope, call, Kind.WAIT, stream, _wait_state(scope, call, stream))


def _record_state(scope: Scope, call: ast.Call) -> State:
    if in_eager_break(scope, call):
        return State.EAGER
    return State.GUARDED if _never_in_piecewise(scope, call) else State.PLAIN


def _wait_state(scope: Scope, call: ast.Call, stream: ast.expr | None) -> State:
    if not _never_in_piecewise(scope, call):
        return State.PLAIN
    if stream is None or any(True for _ in stand_ins(scope, call, stream)):
        return State.GUARDED
    return State.UNORDERED


def _never_in_piecewise(scope: Scope, node: ast.AST, depth: int = 3) -> bool:
    """Barred here, or in a private function all of whose callers in the file are barred."""
    if barred(scope, node):
        return True
    function = scope.source.function_of(node)
    if function is None or depth == 0 or not _is_private(function):
        return False
    calls = list(_calls_of(scope.source, function))
    return bool(calls) and all(_never_in_piecewise(scope, c, depth - 1) for c in calls)


def _is_private(function: Function) -> bool:
    return function.name.startswith("_") and not function.name.startswith("__")


def _calls_of(source: Source, function: Function) -> Iterator[ast.Call]:
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                if name == function.name:
                    yield node


def stand_ins(scope: Scope, call: ast.Call, stream: ast.expr) -> Iterator[ast.Call]:
    """Give the calls that order ``stream`` in piecewise mode where ``call`` does not run."""
    wanted = ast.dump(scope.resolve(stream))
    for place in _places(scope.source, call):
        for node in ast.walk(place):
            match node:
                case ast.Call(func=ast.Attribute(value=other, attr="wait_stream")):
                    if ast.dump(scope.resolve(other)) == wanted and not barred(scope, node):
                        yield node


def _places(source: Source, call: ast.Call) -> Iterator[ast.AST]:
    """Give the function around ``call`` and, if it is private, those that call it."""
    function = source.function_of(call)
    if function is None:
        yield source.tree
        return
    yield function
    if _is_private(function):
        callers = (source.function_of(c) for c in _calls_of(source, function))
        yield from (caller for caller in callers if caller is not None)
