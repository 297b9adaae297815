"""Make a name importable in a LibCST module: extend a fitting import or add one, in order."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import libcst as cst

from capdoctor.vendored_fixes.import_lists import with_name

Body = Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement]


def ensure_import(module: cst.Module, path: str, origin: str, name: str) -> cst.Module:
    """Give ``module`` with ``name`` of ``origin`` bound when it is imported.

    An existing ``from origin import ...`` at the top level is extended (a relative one too);
    imports under ``TYPE_CHECKING``, in ``try`` or in a function do not count. Otherwise a new
    line goes to its place among the imports of the same package.
    """
    for index, line in enumerate(module.body):
        for small in _imports(line):
            if isinstance(small, cst.ImportFrom) and absolute(small, path) == origin:
                extended = with_name(small, name)
                if extended is not None:
                    return _with_line(module, index, line.deep_replace(small, extended))
    new = cst.parse_statement(f"from {origin} import {name}", config=module.config_for_parsing)
    return _inserted(module, path, origin, cst.ensure_type(new, cst.SimpleStatementLine))


def absolute(node: cst.ImportFrom, path: str) -> str | None:
    """Give the dotted module that ``node`` imports from, in a file at ``path``."""
    named = cst.Module([]).code_for_node(node.module) if node.module else ""
    if not node.relative:
        return named
    package = PurePosixPath(path).parent.parts
    kept = package[: len(package) - (len(node.relative) - 1)]
    return ".".join([*kept, named]) if named else ".".join(kept)


def _imports(line: cst.CSTNode) -> Iterator[cst.ImportFrom | cst.Import]:
    if isinstance(line, cst.SimpleStatementLine):
        yield from (s for s in line.body if isinstance(s, cst.ImportFrom | cst.Import))


def _with_line(module: cst.Module, index: int, line: cst.CSTNode) -> cst.Module:
    body = list(module.body)
    body[index] = cst.ensure_type(line, cst.SimpleStatementLine)
    return module.with_changes(body=body)


def _inserted(
    module: cst.Module, path: str, origin: str, new: cst.SimpleStatementLine
) -> cst.Module:
    body = list(module.body)
    new = new.with_changes(trailing_whitespace=cst.TrailingWhitespace())
    family = _family(body, path, origin.partition(".")[0])
    if family:
        place = bisect.bisect([key for key, _ in family], (1, origin))
        index = family[place - 1][1] + 1 if place else family[0][1]
        if not place:
            new, body[index] = _swap_spacing(new, body[index])
    else:
        index = _after_imports(body)
        new = new.with_changes(leading_lines=[cst.EmptyLine(indent=False)] if index else [])
    body.insert(index, new)
    return module.with_changes(body=body)


def _family(body: Body, path: str, package: str) -> list[tuple[tuple[int, str], int]]:
    """Give the absolute imports of ``package`` in the head of the file: sort key and index."""
    found: list[tuple[tuple[int, str], int]] = []
    for index, line in enumerate(body[: _after_imports(body)]):
        for small in _imports(line):
            is_from = isinstance(small, cst.ImportFrom)
            if isinstance(small, cst.ImportFrom):
                origin = absolute(small, path) if not small.relative else None
            else:
                origin = cst.Module([]).code_for_node(small.names[0].name)
            if origin is not None and origin.partition(".")[0] == package:
                found.append(((int(is_from), origin), index))
    return found


def _swap_spacing(
    new: cst.SimpleStatementLine, old: cst.SimpleStatementLine | cst.BaseCompoundStatement
) -> tuple[cst.SimpleStatementLine, cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """Let the first line of a group keep the blank lines in front of the group."""
    lines = list(old.leading_lines)
    blank = 0
    while blank < len(lines) and lines[blank].comment is None:
        blank += 1
    return (
        new.with_changes(leading_lines=lines[:blank]),
        old.with_changes(leading_lines=lines[blank:]),
    )


def _after_imports(body: Body) -> int:
    """Give the index behind the last import of the file's head, or behind its docstring."""
    end = 0
    for index, line in enumerate(body):
        if any(True for _ in _imports(line)) or (index == 0 and _is_docstring(line)):
            end = index + 1
        elif isinstance(line, cst.FunctionDef | cst.ClassDef):
            break
    return end


def _is_docstring(line: cst.CSTNode) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.BaseString())]):
            return True
    return False
