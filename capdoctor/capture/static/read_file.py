"""One file in, one summary out: pure, so that files can be read by several processes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from capdoctor.capture.static import values
from capdoctor.capture.static.events import event_suspicions
from capdoctor.capture.static.infer import infer
from capdoctor.capture.static.modules import (
    ClassFacts,
    Function,
    ModuleFacts,
    annotated,
    read_module,
)
from capdoctor.capture.static.nodes import nodes_of
from capdoctor.capture.static.roots import Role, is_device_code, role_of
from capdoctor.capture.static.scope import Scope, enter, optional_parameters
from capdoctor.capture.static.summary import Call, FileSummary, FunctionSummary, Root, Suspicion
from capdoctor.capture.static.values import Value
from capdoctor.capture.static.walker import Walk, call_target

_FILE_LIMIT = 8 << 20


def read_file(path: Path, shown: str, module: str) -> FileSummary:
    """Give the summary of one source file; a file that cannot be read says why."""
    try:
        if path.stat().st_size > _FILE_LIMIT:
            return FileSummary(shown, module, unreadable="larger than 8 MB")
        data = path.read_bytes()
    except OSError as error:
        return FileSummary(shown, module, unreadable=error.strerror or "unreadable")
    if b"torch" not in data:
        return FileSummary(shown, module)
    return read_source(data, shown, module, is_package=path.name == "__init__.py")


def read_source(
    data: bytes | str, shown: str, module: str, *, is_package: bool = False
) -> FileSummary:
    """Give the summary of a source text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return FileSummary(shown, module, unreadable=f"not Python: {type(error).__name__}")
    facts = read_module(tree, module, is_package=is_package)
    try:
        waits = (b"wait_event" if isinstance(data, bytes) else "wait_event") in data  # type: ignore[operator]
        functions = _Reader(facts, shown, waits=waits).read(tree)
    except RecursionError:
        return FileSummary(shown, module, unreadable="nested too deeply")
    bases = {name: found.bases for name, found in facts.classes.items()}
    return FileSummary(shown, module, tuple(functions), facts.imports, bases)


class _Reader:
    """Walk every function of a module once."""

    def __init__(self, facts: ModuleFacts, shown: str, *, waits: bool) -> None:
        self.waits = waits
        self.facts = facts
        self.shown = shown
        self.returns = _return_values(facts)
        self.found: list[FunctionSummary] = []

    def read(self, tree: ast.Module) -> list[FunctionSummary]:
        """Give the summaries of all functions, methods and nested functions."""
        outer = Scope(self.facts, returns=self.returns)
        outer.names |= _constants(tree, outer)
        for function in self.facts.functions.values():
            self._function(function, None, outer, function.name, [])
        for cls in self.facts.classes.values():
            scope = Scope(self.facts, cls, dict(outer.names), returns=self.returns)
            _learn_fields(cls, scope)
        for cls in self.facts.classes.values():
            waits = event_suspicions(cls) if self.waits else {}
            scope = Scope(self.facts, cls, dict(outer.names), returns=self.returns)
            for name, method in cls.methods.items():
                self._function(method, cls, scope, f"{cls.name}.{name}", waits.get(name, []))
        return self.found

    def _function(
        self,
        node: Function,
        cls: ClassFacts | None,
        outer: Scope,
        name: str,
        extra: list[Suspicion],
    ) -> None:
        if is_device_code(node, self.facts):
            return
        role = role_of(node, cls, self.facts, self.shown, launches=False)
        if role.blocked:
            # Nothing in it runs in a capture; whom it calls tells who is set-up too.
            self._blocked(node, outer, name, role)
            return
        parameters = _parameters(node)
        walk = Walk(parameters=frozenset(parameters), optional=optional_parameters(node))
        walk.body(node.body, enter(node, outer))
        role = role_of(node, cls, self.facts, self.shown, launches=walk.launches)
        calls = list(walk.calls)
        for inner, scope in walk.nested:
            self._function(inner, None, scope, f"{name}.{inner.name}", [])
        local = {inner.name for inner, _ in walk.nested}
        summary = FunctionSummary(
            name=name,
            line=node.lineno,
            root=_root(role, extra, nested="." in name and cls is None),
            blocked=role.blocked,
            seldom=role.seldom,
            suspicions=(*walk.suspicions.values(), *extra),
            calls=tuple(_renamed(call, name, local) for call in calls),
            parameters=parameters,
        )
        self.found.append(summary)

    def _blocked(self, node: Function, outer: Scope, name: str, role: Role) -> None:
        calls = tuple(dict.fromkeys(_calls_of(node, outer)))
        self.found.append(
            FunctionSummary(name, node.lineno, None, role.blocked, role.seldom, (), calls)
        )


def _calls_of(node: Function, scope: Scope) -> Iterator[Call]:
    """Give the calls of a function whose values are of no interest."""
    for part in nodes_of(*node.body):
        if isinstance(part, ast.Call) and (target := call_target(part.func, scope)):
            yield Call(target, seldom=False, exact=False)


def _root(role: Role, extra: list[Suspicion], *, nested: bool) -> Root | None:
    """Give why a capture may run the function; whoever waits for events orders streams in one."""
    if nested:
        return None
    return "orders_streams" if extra and role.root != "forward" else role.root


def _parameters(node: Function) -> tuple[str, ...]:
    """Give the names of the parameters, those that can be given by position first."""
    arguments = node.args
    return tuple(
        item.arg for item in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    )


def _renamed(call: Call, name: str, local: set[str]) -> Call:
    """Point a call of a nested function at its full name."""
    target = call.target.removeprefix("local:")
    if call.target.startswith("local:") and target in local:
        return replace(call, target=f"local:{name}.{target}")
    return call


def _return_values(facts: ModuleFacts) -> dict[str, Value]:
    """Give what annotated functions and methods return; an unannotated one says nothing."""
    found = {
        name: annotated(node.returns, name, facts)
        for name, node in facts.functions.items()
        if node.returns is not None
    }
    for cls in facts.classes.values():
        for name, node in cls.methods.items():
            if node.returns is not None:
                found[f"{cls.name}.{name}"] = annotated(node.returns, name, facts)
    return found


def _constants(tree: ast.Module, scope: Scope) -> dict[str, Value]:
    """Give the values of module-level assignments."""
    found: dict[str, Value] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = infer(node.value, scope)
    return found


def _learn_fields(cls: ClassFacts, scope: Scope) -> None:
    """Add what ``__init__`` and its like assign to ``self`` to the fields of the class."""
    for name, method in cls.methods.items():
        if not (name in {"__init__", "__post_init__"} or "init" in name or "setup" in name):
            continue
        inner = enter(method, scope)
        for node in nodes_of(method):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                _learn(node.targets[0], node.value, cls, inner)
            elif isinstance(node, ast.AnnAssign):
                _learn(node.target, node.value, cls, inner)


def _learn(target: ast.expr, source: ast.expr | None, cls: ClassFacts, scope: Scope) -> None:
    if isinstance(target, ast.Name):
        scope.names[target.id] = infer(source, scope)
    if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
        return
    value = infer(source, scope)
    if value.kind == "tensor" and value.place == "host" and value.sure < values.INFERRED:
        # Models are built under a default device: no device= says nothing about the place.
        value = values.tensor("device", values.ASSUMED, value.ndim, boolean=value.boolean)
    known = cls.fields.get(target.attr)
    cls.fields[target.attr] = values.join(known, value) if known is not None else value
