"""Change a file through LibCST so that everything that is not meant keeps its bytes.

The reading says *where* (spans of ``ast`` nodes) and *what* (edits); this module carries it out.
Only the top-level statements that hold an edit are walked and written anew, the rest of the text
is taken over: a file of 20,000 lines costs little more than its parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.imports import ensure_import
from capdoctor.vendored_fixes.layout import Layout, Statement
from capdoctor.vendored_fixes.source import Source, Span

Node = cst.CSTNode
_Found = tuple[Node, tuple[int, int]]
Replace = Callable[[cst.Module, Node], Node | cst.FlattenSentinel[Node] | cst.RemovalSentinel]


@dataclass(frozen=True)
class Edit:
    """Replace the node at ``span`` (a statement is found by its start).

    ``kinds`` are tried in their order.
    """

    span: Span
    kinds: tuple[type[Node], ...]
    replace: Replace


@dataclass(frozen=True)
class Import:
    """A name that the file must bind when it runs: ``from origin import name``."""

    origin: str
    name: str


def rewrite(source: Source, edits: Iterable[Edit], needs: Iterable[Import] = ()) -> bytes:
    """Give the file's bytes with every edit carried out and every import there.

    Raises:
        CannotDo: LibCST cannot read the file, would not give it back byte for byte, or an edit
            found no node.
    """
    layout = Layout.of(source.path, source.data)
    body: list[Statement] = []
    wanted = list(edits)
    for statement, first, last in layout.statements():
        mine = [edit for edit in wanted if first <= edit.span[0] <= last]
        wanted = [edit for edit in wanted if edit not in mine]
        body += _changed(layout, statement, first, mine, source.path) if mine else [statement]
    if wanted:
        raise _unknown_shape(source.path, wanted)
    module = layout.module.with_changes(body=body)
    for need in needs:
        module = ensure_import(module, source.path, need.origin, need.name)
    return layout.dump(module)


def _changed(
    layout: Layout, statement: Statement, first: int, edits: list[Edit], path: str
) -> list[Statement]:
    alone = layout.module.with_changes(body=[statement], header=[], footer=[])
    where = MetadataWrapper(alone, unsafe_skip_copy=True).resolve(PositionProvider)
    changer = _Changer(layout.module, edits, where, first - 1)
    if changer.left:
        raise _unknown_shape(path, changer.left)
    changed = cst.Module(body=[statement]).visit(changer)
    return list(changed.body)


def _unknown_shape(path: str, edits: list[Edit]) -> CannotDo:
    line = min(edit.span[0] for edit in edits)
    return CannotDo(
        f"{path} line {line} has a shape that this fix cannot change.",
        "Nothing was written. Please report the lines around it.",
    )


class _Changer(cst.CSTTransformer):
    """Carry out edits; ``left`` are those whose node is not in the statement."""

    def __init__(
        self,
        module: cst.Module,
        edits: list[Edit],
        where: Mapping[Node, CodeRange],
        lines_before: int,
    ) -> None:
        super().__init__()
        self.module = module
        self.meant: dict[Node, Edit] = {}
        nodes = _by_start(where, lines_before)
        self.left: list[Edit] = []
        for edit in edits:
            node = _node_for(edit, nodes.get(edit.span[:2], []))
            if node is None:
                self.left.append(edit)
            else:
                self.meant[node] = edit

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Replace ``updated_node`` if an edit is meant for it."""
        if edit := self.meant.get(original_node):
            return edit.replace(self.module, updated_node)
        return super().on_leave(original_node, updated_node)


def _by_start(
    where: Mapping[Node, CodeRange], lines_before: int
) -> dict[tuple[int, int], list[_Found]]:
    found: dict[tuple[int, int], list[_Found]] = {}
    for node, place in where.items():
        start = (place.start.line + lines_before, place.start.column)
        end = (place.end.line + lines_before, place.end.column)
        found.setdefault(start, []).append((node, end))
    return found


def _node_for(edit: Edit, found: list[_Found]) -> Node | None:
    """Give the node of the first kind that is there; a line of several statements is not one."""
    for kind in edit.kinds:
        for node, end in found:
            if isinstance(node, kind) and _fits(node, end, edit.span):
                return node
    return None


def _fits(node: Node, end: tuple[int, int], span: Span) -> bool:
    if isinstance(node, cst.BaseExpression):
        return end == span[2:]
    return not isinstance(node, cst.SimpleStatementLine) or len(node.body) == 1
