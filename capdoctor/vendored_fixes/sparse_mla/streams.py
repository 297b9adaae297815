"""Which stream is the current one at a place: the code may stand in ``with side_stream:``."""

from __future__ import annotations

import ast

from capdoctor.vendored_fixes.source import Function, Source, last_name

CURRENT = "current_stream"
_ENTERING = {"stream", "StreamContext", "use_stream", "set_stream"}


def stream_around(source: Source, node: ast.AST) -> ast.expr | None:
    """Give the stream that a ``with`` around ``node`` made the current one; None if none did."""
    for parent in source.ancestors(node):
        if isinstance(parent, Function | ast.Lambda):
            return None
        if isinstance(parent, ast.With) and node in parent.body:
            for item in reversed(parent.items):
                if (stream := _entered(item.context_expr)) is not None:
                    return stream
        node = parent
    return None


def _entered(context: ast.expr) -> ast.expr | None:
    """Give the stream of ``with side_stream:`` and of ``with torch.cuda.stream(side_stream):``."""
    if isinstance(context, ast.Call):
        known = last_name(context.func) in _ENTERING and context.args
        return context.args[0] if known else None
    name = last_name(context) or ""
    return context if "stream" in name.lower() else None


def named_stream(source: Source, call: ast.Call, stream: ast.expr | None) -> ast.expr | None:
    """Give the stream that ``call`` makes wait; "the current one" has a name inside a ``with``.

    None means the current stream where no ``with`` says another one: the compute stream.
    """
    if stream is None or is_current(stream):
        return stream_around(source, call) or stream
    return stream


def is_current(node: ast.expr) -> bool:
    """Say whether ``node`` asks for the current stream at that very place."""
    return isinstance(node, ast.Call) and last_name(node.func) == CURRENT
