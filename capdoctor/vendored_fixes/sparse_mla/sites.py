"""Find where the logical top-k event is recorded and where it is waited on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from capdoctor.vendored_fixes.source import Function, Source, last_name
from capdoctor.vendored_fixes.sparse_mla.conditions import barred, excludes, in_eager_break
from capdoctor.vendored_fixes.sparse_mla.passing import Handed, handed
from capdoctor.vendored_fixes.sparse_mla.scope import Scope
from capdoctor.vendored_fixes.sparse_mla.streams import named_stream

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
        return _handing_site(scope, call)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    of_event = scope.is_event(call.func.value)
    takes_event = any(scope.is_event(argument) for argument in arguments)
    match call.func.attr:
        case "record" if of_event:
            return Site(scope, call, Kind.RECORD, None, _record_state(scope, call))
        case "record_event" if takes_event or _becomes_event(scope, call):
            return Site(scope, call, Kind.RECORD, None, _record_state(scope, call))
        case "wait_event" if takes_event:
            stream: ast.expr | None = call.func.value
        case "wait" if of_event:
            stream = arguments[0] if arguments else None
        case _:
            return None
    stream = named_stream(scope.source, call, stream)
    return Site(scope, call, Kind.WAIT, stream, _wait_state(scope, call, stream))


def _handing_site(scope: Scope, call: ast.Call) -> Site | None:
    """A helper of the file that waits or records for its caller: the call is the site."""
    match handed(scope, call):
        case Handed(kind="record"):
            return Site(scope, call, Kind.RECORD, None, _record_state(scope, call))
        case Handed(stream=stream):
            stream = named_stream(scope.source, call, stream)
            return Site(scope, call, Kind.WAIT, stream, _wait_state(scope, call, stream))
    return None


def _becomes_event(scope: Scope, call: ast.Call) -> bool:
    """``self.logical_topk_ready = stream.record_event()`` makes a new event each time."""
    match scope.source.parents[call]:
        case ast.Assign(targets=targets):
            return any(isinstance(t, ast.Attribute) and scope.is_event(t) for t in targets)
    return False


def _record_state(scope: Scope, call: ast.Call) -> State:
    if _always_eager(scope, call):
        return State.EAGER
    return State.GUARDED if never_in_piecewise(scope, call) else State.PLAIN


def _wait_state(scope: Scope, call: ast.Call, stream: ast.expr | None) -> State:
    if not never_in_piecewise(scope, call):
        return State.PLAIN
    if stream is None or any(True for _ in stand_ins(scope, call, stream)):
        return State.GUARDED
    return State.UNORDERED


def never_in_piecewise(scope: Scope, node: ast.AST, depth: int = 3) -> bool:
    """Barred here, or in a private function all of whose callers in the file are barred."""
    if barred(scope, node):
        return True
    function = scope.source.function_of(node)
    if function is None or depth == 0 or not _is_private(function):
        return False
    calls = list(_calls_of(scope.source, function))
    return bool(calls) and all(never_in_piecewise(scope, c, depth - 1) for c in calls)


def _always_eager(scope: Scope, node: ast.AST, depth: int = 3) -> bool:
    """In an eager break here, or in a function that the file only calls, or wraps, in one."""
    if in_eager_break(scope, node):
        return True
    function = scope.source.function_of(node)
    if function is None or depth == 0 or not _is_private(function):
        return False
    calls = list(_calls_of(scope.source, function))
    wrapped = _is_wrapped(scope, function)
    return bool(calls or wrapped) and all(_always_eager(scope, c, depth - 1) for c in calls)


def _is_wrapped(scope: Scope, function: Function) -> bool:
    """Say whether the function is only used as ``eager_break_during_capture(function)``."""
    uses = [
        scope.source.parents[node]
        for node in scope.source.nodes
        if isinstance(node, ast.Name | ast.Attribute) and last_name(node) == function.name
    ]
    return bool(uses) and all(
        isinstance(use, ast.Call) and last_name(use.func) in scope.eager_break_names for use in uses
    )


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
            if not isinstance(node, ast.Call) or (other := _ordered(scope, node)) is None:
                continue
            named = named_stream(scope.source, node, other) or other
            if ast.dump(scope.resolve(named)) != wanted:
                continue
            if not barred(scope, node) and not excludes(scope, node, call):
                yield node


def _ordered(scope: Scope, call: ast.Call) -> ast.expr | None:
    """Give the stream that waits for all of another one: ``wait_stream``, or what it is made of.

    ``side.wait_event(compute.record_event())`` is how torch itself does it.
    """
    match call:
        case ast.Call(func=ast.Attribute(value=stream, attr="wait_stream")):
            return stream
        case ast.Call(func=ast.Attribute(value=stream, attr="wait_event"), args=[event]):
            made = scope.resolve(event)
            if isinstance(made, ast.Call) and last_name(made.func) == "record_event":
                return stream if not scope.is_event(event) else None
    return None


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
