"""Walk one function's statements in order, with what is known at each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from capdoctor.capture.static import values
from capdoctor.capture.static.checks import Hit, call_hits, index_hits, store_hits, truth_hits
from capdoctor.capture.static.guards import (
    ends_flow,
    fills_cache,
    omitted,
    only_raises,
    places_on_host,
    returns_when_done,
    runs_seldom,
    truth_in_capture,
)
from capdoctor.capture.static.infer import infer
from capdoctor.capture.static.modules import Function, annotated
from capdoctor.capture.static.nodes import nodes_of
from capdoctor.capture.static.scope import Scope
from capdoctor.capture.static.summary import Call, Suspicion

_OPERATION_LENGTH = 100


@dataclass
class Walk:
    """What was found in one function, and the functions defined inside it."""

    suspicions: dict[tuple[str, int], Suspicion] = field(default_factory=dict)
    calls: dict[Call, None] = field(default_factory=dict)
    nested: list[tuple[Function, Scope]] = field(default_factory=list)
    launches: bool = False
    seldom: bool = False
    parameters: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    default_of: str = ""
    looked_up: set[str] = field(default_factory=set)

    def body(self, statements: Iterable[ast.stmt], scope: Scope) -> bool:
        """Walk the statements; say whether control can reach what follows them."""
        return all(self._statement(statement, scope) for statement in statements)

    def _statement(self, node: ast.stmt, scope: Scope) -> bool:
        if isinstance(node, ast.If):
            return self._if(node, scope)
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
            if isinstance(node, ast.Return) and node.value is not None:
                self._expression(node.value, scope)
            return False
        if isinstance(node, Function):
            self.nested.append((node, scope.fork()))
            scope.names[node.name] = values.UNKNOWN
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._loop(node, scope)
        elif isinstance(node, ast.With | ast.AsyncWith):
            return self._with(node, scope)
        elif isinstance(node, ast.Try):
            return self._try(node, scope)
        elif isinstance(node, ast.Match):
            self._match(node, scope)
        elif not isinstance(node, ast.ClassDef):
            self._simple(node, scope)
        return True

    def _simple(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.Assert):
            self._hits(truth_hits(node.test, scope), node.test)
            self._expression(node.test, scope)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, scope)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._hits(store_hits(target, node.value, scope), target)
                self._bind(target, node.value, scope)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            known = infer(node.value, scope)
            said = annotated(node.annotation, node.target.id, scope.module)
            scope.names[node.target.id] = said if known.kind == "unknown" else known
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            result = ast.BinOp(left=node.target, op=node.op, right=node.value)
            scope.names[node.target.id] = infer(result, scope)

    def _bind(self, target: ast.expr, source: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = infer(source, scope)
            if _is_lookup(source):
                self.looked_up.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            parts = source.elts if isinstance(source, ast.Tuple | ast.List) else []
            for index, item in enumerate(target.elts):
                if len(parts) == len(target.elts):
                    self._bind(item, parts[index], scope)
                elif isinstance(item, ast.Name):
                    known = infer(source, scope)
                    # `a, b = x.shape` gives numbers; a split gives tensors of unknown shape.
                    scope.names[item.id] = known if known.kind == "python" else values.UNKNOWN

    def _if(self, node: ast.If, scope: Scope) -> bool:
        self._hits(truth_hits(node.test, scope), node.test)
        self._expression(node.test, scope)
        taken = truth_in_capture(node.test)
        branches = []
        if taken is not False:
            branches.append(self._branch(node.body, node.test, scope, positive=True))
        if taken is not True:
            branches.append(self._branch(node.orelse, node.test, scope, positive=False))
        alive = [branch for reached, branch in branches if reached]
        if not alive:
            return False
        scope.merge(*alive)
        # What follows an early return runs only the first time.
        self.seldom = self.seldom or returns_when_done(node)
        return True

    def _branch(
        self, body: list[ast.stmt], test: ast.expr, scope: Scope, *, positive: bool
    ) -> tuple[bool, Scope]:
        inner = scope.fork()
        if only_raises(body):
            return False, inner
        on_host = places_on_host(test)
        if on_host is not None and on_host is positive and body:
            return not ends_flow(body), inner
        rare = runs_seldom(test) or (positive and fills_cache(test, body, self.looked_up))
        before, self.seldom = self.seldom, self.seldom or (bool(body) and rare)
        outer, left_out = self.default_of, omitted(test) if positive else ""
        self.default_of = left_out if left_out in self.parameters else outer
        reached = self.body(body, inner)
        self.seldom, self.default_of = before, outer
        return reached, inner

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        if isinstance(node, ast.While):
            self._hits(truth_hits(node.test, scope), node.test)
            self._expression(node.test, scope)
        else:
            self._expression(node.iter, scope)
            self._bind_loop(node.target, node.iter, scope)
        inner = scope.fork()
        self.body(node.body, inner)
        scope.merge(scope.fork(), inner)
        self.body(node.orelse, scope)

    def _bind_loop(self, target: ast.expr, iterated: ast.expr, scope: Scope) -> None:
        source = infer(iterated, scope)
        counted = isinstance(iterated, ast.Call) and ast.unparse(iterated.func) == "range"
        if isinstance(target, ast.Name):
            down = None if source.ndim is None else max(0, source.ndim - 1)
            item = source.like(down) if source.kind == "tensor" else values.UNKNOWN
            scope.names[target.id] = values.PYTHON if counted else item
            return
        for name in nodes_of(target):
            if isinstance(name, ast.Name):
                scope.names[name.id] = values.UNKNOWN

    def _match(self, node: ast.Match, scope: Scope) -> None:
        self._expression(node.subject, scope)
        ends = [scope.fork()]
        for case in node.cases:
            inner = scope.fork()
            for part in nodes_of(case.pattern):
                if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
                    inner.names[part.name] = values.UNKNOWN
            if self.body(case.body, inner):
                ends.append(inner)
        scope.merge(*ends)

    def _with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
        inner_place = scope.default_place
        for item in node.items:
            self._expression(item.context_expr, scope)
            value = infer(item.context_expr, scope)
            if value.kind == "device" and value.place != "unknown":
                inner_place = value.place
            if isinstance(item.optional_vars, ast.Name):
                scope.names[item.optional_vars.id] = values.UNKNOWN
        before, scope.default_place = scope.default_place, inner_place
        reached = self.body(node.body, scope)
        scope.default_place = before
        return reached

    def _try(self, node: ast.Try, scope: Scope) -> bool:
        reached = self.body(node.body, scope)
        for handler in node.handlers:
            seldom, self.seldom = self.seldom, True
            reached = self.body(handler.body, scope.fork()) or reached
            self.seldom = seldom
        if reached:
            reached = self.body(node.orelse, scope)
        return self.body(node.finalbody, scope) and reached

    def _expression(self, node: ast.expr, scope: Scope) -> None:
        if isinstance(node, ast.Name | ast.Constant):
            return
        parts = list(nodes_of(node))
        for part in parts:
            if isinstance(part, ast.comprehension):
                self._bind_loop(part.target, part.iter, scope)
        for part in parts:
            if isinstance(part, ast.Call):
                self._call(part, scope)
            elif isinstance(part, ast.Subscript):
                self._hits(index_hits(part, scope), part)
            elif isinstance(part, ast.IfExp):
                self._hits(truth_hits(part.test, scope), part.test)
            elif isinstance(part, ast.NamedExpr):
                scope.names[part.target.id] = infer(part.value, scope)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        self._hits(call_hits(node, scope), node)
        if isinstance(node.func, ast.Subscript):
            self.launches = True
        target = call_target(node.func, scope)
        if target:
            self.calls[self._call_of(target, node, scope)] = None
        # A function handed to a wrapper is called by it, as far as anyone can tell.
        for argument in node.args:
            if isinstance(argument, ast.Name) and argument.id in scope.module.functions:
                self.calls[Call(f"local:{argument.id}", self.seldom, exact=False)] = None

    def _call_of(self, target: str, node: ast.Call, scope: Scope) -> Call:
        """Note which arguments a call surely gives, and which of them lie in host memory."""
        given: dict[int | str, ast.expr] = dict(enumerate(node.args))
        given |= {word.arg: word.value for word in node.keywords if word.arg is not None}
        starred = any(isinstance(item, ast.Starred) for item in node.args)
        named = all(word.arg is not None for word in node.keywords)
        host = frozenset(key for key, item in given.items() if infer(item, scope).on_host)
        sure = frozenset(key for key, item in given.items() if not self._may_be_none(item, scope))
        return Call(target, self.seldom, sure, host, named and not starred)

    def _may_be_none(self, node: ast.expr, scope: Scope) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.optional
        return infer(node, scope).none_only or isinstance(node, ast.IfExp)

    def _hits(self, hits: Iterable[Hit], node: ast.expr) -> None:
        for rule, sure, origin in hits:
            text = ast.unparse(node)
            if len(text) > _OPERATION_LENGTH:
                text = text[: _OPERATION_LENGTH - 1] + "\u2026"
            found = Suspicion(rule, node.lineno, text, sure, self.seldom, origin, self.default_of)
            key = (rule, node.lineno)
            known = self.suspicions.get(key)
            if known is None or known.sure < sure:
                self.suspicions[key] = replace(found, seldom=self.seldom)


def _is_lookup(node: ast.expr) -> bool:
    """Say whether the value comes out of a table that may lack it: ``cache.get(key)``."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
    )


def call_target(func: ast.expr, scope: Scope) -> str:
    """Give the name by which the called function can be looked up, or ''."""
    if isinstance(func, ast.Name):
        if func.id in scope.module.imports:
            return scope.module.imports[func.id]
        return f"local:{func.id}"
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        owner = func.value.id
        if owner in {"self", "cls"} and scope.cls is not None:
            return f"self:{scope.cls.name}.{func.attr}"
        if owner in scope.module.classes:
            name = "forward" if func.attr == "apply" else func.attr
            return f"self:{owner}.{name}"
    dotted = scope.module.dotted(func)
    return dotted if "." in dotted and dotted.split(".")[0] not in {"self", "torch"} else ""
