"""What a tree's forward context offers: decided from its code, never from a version."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from capdoctor.vendored_fixes.source import Function, Source
from capdoctor.vendored_fixes.sparse_mla.conditions import MODE
from capdoctor.vendored_fixes.sparse_mla.scope import HELPER

MODULE = "vllm.forward_context"
FILE = "vllm/forward_context.py"
GETTER = "get_forward_context"
AVAILABLE = "is_forward_context_available"
MODE_CLASS = "CUDAGraphMode"
CONFIG = "vllm.config"


@dataclass(frozen=True)
class ForwardContext:
    """What ``forward_context.py`` binds at its top level.

    ``variable`` is the module's global that holds the context; ``mode_class`` says whether
    ``CUDAGraphMode`` is bound when the module runs, only for type checkers, or not at all;
    ``after`` is the function that a new helper best follows.
    """

    source: Source
    has_helper: bool
    has_getter: bool
    has_available: bool
    has_mode: bool
    variable: str | None
    mode_class: Literal["runtime", "typing", "absent"]
    after: str | None

    @property
    def can_take_helper(self) -> bool:
        """Say whether a helper that asks for the mode can be written for this module."""
        knows_context = (self.has_getter and self.has_available) or self.variable is not None
        return self.has_mode and knows_context


def read_forward_context(source: Source) -> ForwardContext:
    """Look at the names that ``forward_context.py`` binds."""
    bound = _bound(source.tree.body)
    guarded = [node for node in source.tree.body if is_type_checking(node)]
    typing_only = {name for node in guarded for name in _bound(getattr(node, "body", []))}
    functions = [n.name for n in source.tree.body if isinstance(n, Function)]
    return ForwardContext(
        source=source,
        has_helper=HELPER in bound,
        has_getter=GETTER in bound,
        has_available=AVAILABLE in bound,
        has_mode=any(_mentions_mode(node) for node in source.nodes),
        variable=_variable(source, bound),
        mode_class=_how_bound(MODE_CLASS, bound, typing_only),
        after=next((n for n in (AVAILABLE, GETTER) if n in functions), None),
    )


def _how_bound(
    name: str, bound: set[str], typing_only: set[str]
) -> Literal["runtime", "typing", "absent"]:
    if name in bound:
        return "runtime"
    return "typing" if name in typing_only else "absent"


def is_type_checking(node: ast.stmt) -> bool:
    """Say whether ``node`` is ``if TYPE_CHECKING:``."""
    match node:
        case ast.If(test=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "TYPE_CHECKING"
    return False


def _bound(statements: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in statements:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                names.add(name)
            case ast.Try(body=body):
                names |= _bound(body)
    return names


def _variable(source: Source, bound: set[str]) -> str | None:
    """Give the global that ``get_forward_context`` returns."""
    for node in source.tree.body:
        if isinstance(node, Function) and node.name == GETTER:
            returns = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
            match returns:
                case [ast.Name(id=name)] if name in bound:
                    return name
    return None


def _mentions_mode(node: ast.AST) -> bool:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name == MODE
    return False
