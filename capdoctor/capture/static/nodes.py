"""A walk over syntax trees, faster than ``ast.walk``: a project has millions of nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Operators and contexts are leaves that nobody here looks at.
_IGNORED = frozenset({"ctx", "op", "type_comment", "kind", "type_params"})


def nodes_of(*roots: ast.AST) -> Iterator[ast.AST]:
    """Give the nodes themselves and everything below them, in no particular order."""
    stack: list[ast.AST] = list(roots)
    while stack:
        node = stack.pop()
        yield node
        for name in node._fields:
            if name in _IGNORED:
                continue
            value = getattr(node, name, None)
            if value.__class__ is list:
                stack.extend(item for item in value if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST):
                stack.append(value)
