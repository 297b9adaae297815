"""Add one name to ``from x import a, b`` in the layout that the list already has."""

from __future__ import annotations

import bisect

import libcst as cst


def with_name(node: cst.ImportFrom, name: str) -> cst.ImportFrom | None:
    """Give ``node`` with ``name`` added, sorted if the list is; None for ``import *``."""
    if isinstance(node.names, cst.ImportStar):
        return None
    aliases = list(node.names)
    if any(_name(alias) == name and alias.asname is None for alias in aliases):
        return node
    keys = [_key(_name(alias)) for alias in aliases]
    is_sorted = keys == sorted(keys)
    place = bisect.bisect(keys, _key(name)) if is_sorted else len(aliases)
    new = cst.ImportAlias(cst.Name(name))
    separator = _separator(node, aliases)
    if place < len(aliases):
        aliases.insert(place, new.with_changes(comma=separator))
    else:
        last = aliases[-1]
        aliases[-1] = last.with_changes(comma=_with_comment(separator, last.comma))
        closing = _bare(last.comma) if isinstance(last.comma, cst.Comma) else last.comma
        aliases.append(new.with_changes(comma=closing))
    return node.with_changes(names=aliases)


def _name(alias: cst.ImportAlias) -> str:
    return cst.Module([]).code_for_node(alias.name)


def _key(name: str) -> tuple[int, str]:
    """Sort as isort does: constants, classes, then the rest."""
    if name.isupper():
        return 0, name
    return (1 if name[:1].isupper() else 2), name


def _separator(node: cst.ImportFrom, aliases: list[cst.ImportAlias]) -> cst.Comma:
    """Give the comma and the white space that stand between two names of the list."""
    if len(aliases) > 1 and isinstance(aliases[0].comma, cst.Comma):
        return _bare(aliases[0].comma)
    inner = node.lpar.whitespace_after if node.lpar else None
    if isinstance(inner, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=_plain(inner))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _plain(space: cst.ParenthesizedWhitespace) -> cst.ParenthesizedWhitespace:
    """Give the same line end and indent without comments or blank lines."""
    first = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return space.with_changes(first_line=first, empty_lines=())


def _bare(comma: cst.Comma) -> cst.Comma:
    """Give the comma without the remarks behind it."""
    after = comma.whitespace_after
    if isinstance(after, cst.ParenthesizedWhitespace):
        return comma.with_changes(whitespace_after=_plain(after))
    return comma


def _with_comment(separator: cst.Comma, old: cst.Comma | cst.MaybeSentinel) -> cst.Comma:
    """Give the separator with the remarks that stood behind the old, last comma."""
    if not isinstance(old, cst.Comma):
        return separator
    after, before = separator.whitespace_after, old.whitespace_after
    if isinstance(after, cst.ParenthesizedWhitespace) and isinstance(
        before, cst.ParenthesizedWhitespace
    ):
        kept = after.with_changes(first_line=before.first_line, empty_lines=before.empty_lines)
        return separator.with_changes(whitespace_after=kept)
    return separator
