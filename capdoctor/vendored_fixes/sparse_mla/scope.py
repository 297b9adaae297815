"""What names stand for inside a function: locals that were given a value once, imports, helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from capdoctor.vendored_fixes.source import Function, Source

HELPER = "in_piecewise_cudagraph"
EAGER_BREAK = "eager_break_during_capture"
EVENT = "logical_topk_ready"


@dataclass(frozen=True)
class Scope:
    """Look names of one file up."""

    source: Source

    @cached_property
    def helper_names(self) -> frozenset[str]:
        """Every name under which the file calls the piecewise helper."""
        return self.names_of(HELPER)

    def names_of(self, imported: str) -> frozenset[str]:
        """Give a name with the other names under which the file imports it."""
        aliases = {
            alias.asname or alias.name
            for node in self.source.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name == imported
        }
        return frozenset(aliases | {imported})

    @cached_property
    def eager_break_names(self) -> frozenset[str]:
        """Every name of the decorator that breaks out of a captured segment."""
        return self.names_of(EAGER_BREAK)

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The file's functions and methods by their bare name."""
        found: dict[str, list[Function]] = {}
        for node in self.source.nodes:
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def _assigned(self) -> dict[tuple[ast.AST | None, str], list[ast.expr]]:
        """The values that each function gives to each of its names."""
        found: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        for node in self.source.nodes:
            for name, value in _bindings(node):
                found.setdefault((self.source.function_of(node), name), []).append(value)
        return found

    def values(self, name: ast.Name) -> list[ast.expr]:
        """Give every value that ``name`` gets in the functions around it, innermost first."""
        place: ast.AST = name
        while (function := self.source.function_of(place)) is not None:
            if values := self._assigned.get((function, name.id)):
                return values
            place = function
        return self._assigned.get((None, name.id), [])

    def resolve(self, node: ast.expr) -> ast.expr:
        """Follow a name that was given a value exactly once, and a walrus."""
        for _ in range(8):  # a name cannot be worth following for longer
            if isinstance(node, ast.NamedExpr):
                node = node.value
            elif isinstance(node, ast.Name) and len(values := self.values(node)) == 1:
                node = values[0]
            else:
                break
        return node

    def is_event(self, node: ast.expr, depth: int = 4) -> bool:
        """Say whether ``node`` is the logical top-k event, by attribute, parameter or alias."""
        match node:
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)) if (
                name == EVENT
            ):
                return True
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]):
                return bool(name == EVENT)
            case ast.Name(id=name):
                values = self.values(node) if depth else []
                return name == EVENT or any(self.is_event(v, depth - 1) for v in values)
        return any(self.is_event(part, depth) for part in _may_be(node))


def _may_be(node: ast.expr) -> list[ast.expr]:
    """Give the parts of an expression that its value may be, or that hold its value."""
    match node:
        case ast.NamedExpr(value=value) | ast.Subscript(value=value):
            return [value]
        case ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
    return []


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _pairs(target, value)
        case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=values) | ast.List(elts=values)):
            yield from ((name, value) for value in values)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            yield name, value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for one, other in zip(names, values, strict=True):
                yield from _pairs(one, other)
