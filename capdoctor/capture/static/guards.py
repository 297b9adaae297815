"""What an ``if`` says about capturing: which branch a capture takes, which runs seldom."""

from __future__ import annotations

import ast

from capdoctor.capture.static.nodes import nodes_of
from capdoctor.capture.static.tables import matches


def truth_in_capture(test: ast.expr) -> bool | None:
    """Give the value of the test while a graph is captured, None where it says nothing."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth_in_capture(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        return _combine([truth_in_capture(part) for part in test.values], test.op)
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return False
    if isinstance(test, ast.Call | ast.Name | ast.Attribute):
        target = test.func if isinstance(test, ast.Call) else test
        return True if matches("capturing_test", ast.unparse(target)) else None
    return None


def _combine(parts: list[bool | None], operator: ast.boolop) -> bool | None:
    decides = not isinstance(operator, ast.And)
    if decides in parts:
        return decides
    return None if None in parts else not decides


def places_on_host(test: ast.expr) -> bool | None:
    """Say whether the test means that the tensors are in host memory (or surely not)."""
    text = ast.unparse(test)
    if not matches("host_device_test", text):
        return None
    negated = text.startswith("not ") or "!=" in text
    says_host = "cpu" in text or "xpu" in text or "tpu" in text
    return says_host != negated


def runs_seldom(test: ast.expr) -> bool:
    """Say whether the branch is one that engines do not capture: prefill, debugging."""
    text = ast.unparse(test)
    return matches("seldom_test", text) or matches("compiling_test", text)


def ends_flow(body: list[ast.stmt]) -> bool:
    """Say whether the body always leaves the function or the loop."""
    last = body[-1] if body else None
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def only_raises(body: list[ast.stmt]) -> bool:
    """Say whether the body exists to raise: nothing in it runs in a capture that works."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def fills_cache(test: ast.expr, body: list[ast.stmt], looked_up: set[str]) -> bool:
    """Say whether the branch makes something once and keeps it: ``if self.x is None: ...``.

    ``looked_up`` are the locals that came out of a cache. Engines run eagerly before they
    capture, so such a branch is over by then.
    """
    if isinstance(test, ast.BoolOp):
        return any(fills_cache(part, body, looked_up) for part in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if isinstance(test.ops[0], ast.NotIn):
        return True
    if not isinstance(test.ops[0], ast.Is) or ast.unparse(test.comparators[0]) != "None":
        return False
    missing = test.left
    if isinstance(missing, ast.Name):
        return missing.id in looked_up
    return isinstance(missing, ast.Attribute | ast.Subscript) and _assigns(body, missing)


def omitted(test: ast.expr) -> str:
    """Give the name of which the test says that it was left out: ``if NAME is None``."""
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
        return ""
    asks = len(test.ops) == 1 and isinstance(test.ops[0], ast.Is)
    return test.left.id if asks and ast.unparse(test.comparators[0]) == "None" else ""


def _assigns(body: list[ast.stmt], target: ast.expr) -> bool:
    wanted = ast.unparse(target)
    return any(
        wanted == ast.unparse(place)
        for statement in body
        for node in nodes_of(statement)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for place in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )


def returns_when_done(node: ast.If) -> bool:
    """Say whether the statement leaves at once when the work was done before."""
    test = node.test
    if not (node.body and isinstance(node.body[-1], ast.Return)) or node.orelse:
        return False
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    kept = isinstance(test.left, ast.Attribute) or isinstance(test.comparators[0], ast.Attribute)
    if isinstance(test.ops[0], ast.IsNot):
        return kept and ast.unparse(test.comparators[0]) == "None"
    return isinstance(test.ops[0], ast.In) and kept
