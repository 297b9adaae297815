"""Put ``in_piecewise_cudagraph`` into a forward context that lacks it."""

from __future__ import annotations

import libcst as cst

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.imports import ensure_import
from capdoctor.vendored_fixes.layout import Layout
from capdoctor.vendored_fixes.sparse_mla.conditions import MODE
from capdoctor.vendored_fixes.sparse_mla.helper import (
    AVAILABLE,
    CONFIG,
    GETTER,
    MODE_CLASS,
    ForwardContext,
)
from capdoctor.vendored_fixes.sparse_mla.scope import HELPER

_TEMPLATE = '''\
def {helper}() -> bool:
    """Tell whether this forward pass runs in piecewise mode, at capture or at replay.

    False outside a forward pass and in the FULL and NONE modes.
    """
{lines}'''


def with_helper(context: ForwardContext) -> bytes:
    """Give the bytes of ``forward_context.py`` with the helper in it.

    Raises:
        CannotDo: the module does not show how to ask for the mode.
    """
    if not context.can_take_helper:
        raise CannotDo(
            f"{context.source.path} does not say in which graph mode a forward pass runs.",
            "Nothing was written: this fix needs get_forward_context().cudagraph_runtime_mode.",
        )
    layout = Layout.of(context.source.path, context.source.data)
    module = layout.module
    if context.mode_class == "absent":
        module = ensure_import(module, context.source.path, CONFIG, MODE_CLASS)
    function = _parse_like(module, _TEMPLATE.format(helper=HELPER, lines=_body(context)))
    blank = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    body = list(module.body)
    body.insert(_place(module, context.after), function.with_changes(leading_lines=blank))
    return layout.dump(module.with_changes(body=body))


def _body(context: ForwardContext) -> str:
    lines = []
    if context.mode_class == "typing":
        # The module keeps that import from running, so it must not run at import time here.
        lines.append(f"    from {CONFIG} import {MODE_CLASS}\n\n")
    if context.has_getter and context.has_available:
        asks, holder = f"{AVAILABLE}()", f"{GETTER}()"
    else:
        asks, holder = f"{context.variable} is not None", str(context.variable)
    equal = f"{holder}.{MODE} == {MODE_CLASS}.PIECEWISE"
    lines.append(f"    return (\n        {asks}\n        and {equal}\n    )\n")
    return "".join(lines)


def _parse_like(module: cst.Module, code: str) -> cst.FunctionDef:
    """Parse a function (four-space indents) with the line ends and indents of ``module``."""
    text = code.replace("    ", module.default_indent).replace("\n", module.default_newline)
    statement = cst.parse_module(text, config=module.config_for_parsing).body[0]
    return cst.ensure_type(statement, cst.FunctionDef)


def _place(module: cst.Module, after: str | None) -> int:
    for index, node in enumerate(module.body):
        if isinstance(node, cst.FunctionDef) and node.name.value == after:
            return index + 1
    return len(module.body)
