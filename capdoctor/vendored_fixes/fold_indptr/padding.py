"""The edits: one ``pad`` for the three statements where that is sure, else a slice fill."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from capdoctor.vendored_fixes.fold_indptr.pattern import Padded, find_pattern
from capdoctor.vendored_fixes.fold_indptr.sites import Fold
from capdoctor.vendored_fixes.fold_indptr.zeros import zeros_instead
from capdoctor.vendored_fixes.guards import parenthesized
from capdoctor.vendored_fixes.rewriting import Edit, Node

_TIGHT = (cst.Name, cst.Call, cst.Attribute, cst.Subscript)


def edits(fold: Fold) -> list[Edit]:
    """Give the edits that take one host copy out of a function.

    Raises:
        CannotDo: a zero is built in a way that cannot be spelled anew.
    """
    if fold.built is not None:
        return [zeros_instead(fold, fold.built)]
    pattern = find_pattern(fold)
    if pattern is None:
        return [_slice_fill(fold)]
    return _Join(pattern).edits(fold)


def _slice_fill(fold: Fold) -> Edit:
    """``out[0] = 0`` becomes ``out[:1] = 0``: a fill on the device, always legal."""
    if fold.store is None:
        raise ValueError(fold.way)

    def replace(module: cst.Module, node: Node) -> Node:
        del module
        part = cst.Slice(lower=None, upper=cst.Integer("1"))
        return node.with_changes(slice=[cst.SubscriptElement(part)])

    return Edit(fold.source.span(fold.store.target), (cst.Subscript,), replace)


@dataclass
class _Join:
    """Carry three statements over into one; LibCST hands them out in the order of the file."""

    pattern: Padded
    lines: list[cst.EmptyLine] = field(default_factory=list)
    allocation: cst.Assign | cst.AnnAssign | None = None
    rest: cst.BaseExpression | None = None

    def edits(self, fold: Fold) -> list[Edit]:
        statements = [self.pattern.allocation, self.pattern.zero, self.pattern.rest]
        statements.sort(key=lambda statement: statement.lineno)
        spans = [fold.source.span(statement) for statement in statements]
        line = (cst.SimpleStatementLine,)
        return [*(Edit(s, line, self._take) for s in spans[:-1]), Edit(spans[-1], line, self._put)]

    def _take(self, module: cst.Module, node: Node) -> cst.RemovalSentinel:
        """Remove a line, but keep its comments and blank lines for the one that remains."""
        del module
        line = self._look_at(node)
        self.lines += line.leading_lines
        if comment := line.trailing_whitespace.comment:
            self.lines.append(cst.EmptyLine(comment=comment))
        return cst.RemoveFromParent()

    def _put(self, module: cst.Module, node: Node) -> Node:
        line = self._look_at(node)
        if self.allocation is None or self.rest is None:
            raise ValueError(line)
        new = self.allocation.with_changes(value=self._pad(module, self.rest))
        return line.with_changes(body=[new], leading_lines=[*self.lines, *line.leading_lines])

    def _look_at(self, node: Node) -> cst.SimpleStatementLine:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        match line.body[0]:
            case cst.Assign(targets=[cst.AssignTarget(cst.Subscript() as part)], value=value):
                if isinstance(part.slice[0].slice, cst.Slice):
                    self.rest = value
            case cst.Assign() | cst.AnnAssign() as allocation:
                self.allocation = allocation
        return line

    def _pad(self, module: cst.Module, rest: cst.BaseExpression) -> cst.Call:
        if not self.pattern.is_cast:
            tensor = rest if isinstance(rest, _TIGHT) or rest.lpar else parenthesized(rest)
            kind = cst.parse_expression(self.pattern.dtype)
            rest = cst.Call(cst.Attribute(tensor, cst.Name("to")), [cst.Arg(kind)])
        broken = cst.ParenthesizedWhitespace(
            indent=True, last_line=cst.SimpleWhitespace(module.default_indent)
        )
        closing = cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(""))
        options = cst.ensure_type(cst.parse_expression("f((1, 0), value=0)"), cst.Call).args
        last = options[-1].with_changes(whitespace_after_arg=closing)
        return cst.Call(
            cst.parse_expression(self.pattern.pad),
            [cst.Arg(rest), options[0], last],
            whitespace_before_args=broken,
        )
