"""Replace ``stream.query()`` in ``stream_is_idle`` by ``False``: a capture allows no query.

``read`` uses the standard library's parser alone; LibCST is imported where it rewrites.
"""

from __future__ import annotations

import ast

from capdoctor.model import FixSite, FixStatus
from capdoctor.vendored_fixes.contract import Files, Reading
from capdoctor.vendored_fixes.source import Function, Source, Unreadable, parse

FUNCTION = "stream_is_idle"


def read(files: Files) -> Reading:
    """Decide from the code alone."""
    sites: list[FixSite] = []
    for path, data in files.items():
        try:
            source = parse(path, data)
        except Unreadable as error:
            site = FixSite(path, None, FixStatus.UNREADABLE, str(error))
            return Reading(FixStatus.UNREADABLE, (site,), "a file of this fix cannot be read")
        sites += [_site(source, function) for function in _functions(source)]
    if not sites:
        return Reading(FixStatus.NOT_APPLICABLE, (), f"no file defines {FUNCTION}")
    found = {site.status for site in sites}
    if len(found) == 1:
        return Reading(found.pop(), tuple(sites))
    return Reading(FixStatus.PARTLY_FIXED, tuple(sites))


def rewrite(files: Files) -> dict[str, bytes]:
    """Give the changed files, in the order in which they have to reach the disk."""
    import libcst as cst

    from capdoctor.vendored_fixes import rewriting

    changed: dict[str, bytes] = {}
    for path, data in files.items():
        source = parse(path, data)
        calls = [call for function in _functions(source) for call in _queries(function)]
        if calls:
            edits = [
                rewriting.Edit(source.span(call), (cst.Call,), lambda *_: cst.Name("False"))
                for call in calls
            ]
            changed[path] = rewriting.rewrite(source, edits)
    return changed


def _functions(source: Source) -> list[Function]:
    return [n for n in source.nodes if isinstance(n, Function) and n.name == FUNCTION]


def _queries(function: Function) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "query"
    ]


def _site(source: Source, function: Function) -> FixSite:
    if calls := _queries(function):
        reason = f"line {calls[0].lineno} queries a stream"
        return FixSite(source.path, source.name_of(function), FixStatus.VULNERABLE, reason)
    return FixSite(source.path, source.name_of(function), FixStatus.FIXED, "queries no stream")
