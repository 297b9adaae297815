"""Whether a line can run in piecewise mode, decided from the tests on the way to it."""

from __future__ import annotations

import ast
import textwrap

import pytest

from capdoctor.vendored_fixes.source import parse
from capdoctor.vendored_fixes.sparse_mla.conditions import barred
from capdoctor.vendored_fixes.sparse_mla.scope import Scope

AVAILABLE = "is_forward_context_available()"
PIECEWISE = "in_piecewise_cudagraph()"
MODE = "get_forward_context().cudagraph_runtime_mode"


def is_barred(body: str) -> bool:
    text = f"def f(self, x, y):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    source = parse("vllm/x.py", text.encode())
    (call,) = (
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "site"
    )
    return barred(Scope(source), call)


BARRED = {
    "not": f"if not {PIECEWISE}: site()",
    "and not": f"if x and not {PIECEWISE}: site()",
    "and not, first": f"if not {PIECEWISE} and x: site()",
    "de morgan": f"if not (x or {PIECEWISE}): site()",
    "else": f"if {PIECEWISE}: pass\nelse: site()",
    "else of or": f"if x or {PIECEWISE}: pass\nelse: site()",
    "elif": f"if {PIECEWISE}: pass\nelif x: site()",
    "early return": f"if {PIECEWISE}:\n    return\nsite()",
    "early return of or": f"if not x or {PIECEWISE}:\n    return\nsite()",
    "early raise": f"if {PIECEWISE}:\n    raise ValueError\nsite()",
    "early continue": f"for i in x:\n    if {PIECEWISE}:\n        continue\n    site()",
    "early return in both": f"if {PIECEWISE}:\n    if x: return 1\n    else: return 2\nsite()",
    "else leaves": f"if not {PIECEWISE}:\n    pass\nelse:\n    return\nsite()",
    "assert": f"assert not {PIECEWISE}\nsite()",
    "with": f"with x:\n    if {PIECEWISE}: return\nsite()",
    "outer": f"if not {PIECEWISE}:\n    with x:\n        for i in y:\n            site()",
    "conditional": f"None if {PIECEWISE} else site()",
    "short and": f"not {PIECEWISE} and site()",
    "short or": f"{PIECEWISE} or site()",
    "local": f"p = {PIECEWISE}\nif not p: site()",
    "local of local": f"p = {PIECEWISE}\nq = not p\nif q: site()",
    "walrus": f"if not (p := {PIECEWISE}): site()",
    "bool": f"if not bool({PIECEWISE}): site()",
    "module": "if not forward_context.in_piecewise_cudagraph(): site()",
    "mode": f"if {MODE} != CUDAGraphMode.PIECEWISE: site()",
    "mode is": f"if {MODE} is not CUDAGraphMode.PIECEWISE: site()",
    "mode reversed": f"if CUDAGraphMode.PIECEWISE != {MODE}: site()",
    "mode full": f"if {MODE} == CUDAGraphMode.FULL: site()",
    "mode in": f"if {MODE} in (CUDAGraphMode.NONE, CUDAGraphMode.FULL): site()",
    "mode not in": f"if {MODE} not in [CUDAGraphMode.PIECEWISE]: site()",
    "mode local": f"m = {MODE}\nif m == CUDAGraphMode.PIECEWISE: return\nsite()",
    "mode getattr": "if getattr(c, 'cudagraph_runtime_mode', 0) != M.PIECEWISE: site()",
    "available": f"if not (is_forward_context_available() and {MODE} == M.PIECEWISE): site()",
    "context": f"if not (_forward_context is not None and {MODE} == M.PIECEWISE): site()",
    "import alias": "from vllm.ctx import in_piecewise_cudagraph as p\nif not p(): site()",
    "nested exits": f"if is_forward_context_available():\n    if {PIECEWISE}: return\nsite()",
    "conditional mode": f"m = {MODE} if {AVAILABLE} else M.NONE\nif m != M.PIECEWISE: site()",
    "conditional test": f"if not ({PIECEWISE} if {AVAILABLE} else False): site()",
    "match mode": f"match {MODE}:\n    case M.FULL | M.NONE: site()",
    "match rest": f"match {MODE}:\n    case M.PIECEWISE: pass\n    case _: site()",
    "match exit": f"match {PIECEWISE}:\n    case True: return\nsite()",
    "match false": f"match {PIECEWISE}:\n    case False: site()",
    "several returns": f"def p():\n    if not {AVAILABLE}: return False\n    return {PIECEWISE}\n"
    "if not p(): site()",
    "returns by branch": f"def p():\n    if {PIECEWISE}: return True\n    return False\n"
    "if not p(): site()",
}
OPEN = {
    "nothing": "site()",
    "wrong way": f"if {PIECEWISE}: site()",
    "or not": f"if x or not {PIECEWISE}: site()",
    "else of and": f"if x and {PIECEWISE}: pass\nelse: site()",
    "later": f"site()\nif {PIECEWISE}: return",
    "no exit": f"if {PIECEWISE}:\n    x = 1\nsite()",
    "half an exit": f"if {PIECEWISE}:\n    if x: return\nsite()",
    "exit of and": f"if x and {PIECEWISE}: return\nsite()",
    "in the test": f"if site() and not {PIECEWISE}: pass",
    "capturing": "if not torch.cuda.is_current_stream_capturing(): site()",
    "other mode": f"if {MODE} != CUDAGraphMode.FULL: site()",
    "mode in all": f"if {MODE} in (CUDAGraphMode.PIECEWISE, CUDAGraphMode.FULL): site()",
    "configured": "if self.config.cudagraph_mode != CUDAGraphMode.PIECEWISE: site()",
    "reassigned": f"p = {PIECEWISE}\np = x\nif not p: site()",
    "other helper": "if not in_full_cudagraph(): site()",
    "nested function": f"if not {PIECEWISE}:\n    def g():\n        site()\n    return g",
    "loop break": f"for i in x:\n    if {PIECEWISE}:\n        break\nsite()",
    "while": f"while {PIECEWISE}:\n    site()",
    "match other mode": f"match {MODE}:\n    case M.FULL: pass\n    case _: site()",
    "match with a guard": f"match {PIECEWISE}:\n    case True if x: return\nsite()",
    "match pattern": "match y:\n    case [a]: return\nsite()",
    "match without a fit": "match x:\n    case 1: return\n    case 2: return\nsite()",
    "exit in a loop": f"for i in x:\n    if {PIECEWISE}: return\nsite()",
    "stub": "def p(): pass\nif p(): site()",
    "stub that raises": "def p(): raise NotImplementedError\nif p(): site()",
    "returns that differ": f"def p():\n    if x: return {PIECEWISE}\n    return False\n"
    "if not p(): site()",
    "recursive": "def p(): return p()\nif not p(): site()",
}


@pytest.mark.parametrize("body", BARRED.values(), ids=BARRED.keys())
def test_these_keep_a_line_out_of_piecewise_mode(body: str) -> None:
    assert is_barred(body)


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN.keys())
def test_these_do_not(body: str) -> None:
    assert not is_barred(body)
