"""The sparse-MLA fix: in piecewise mode neither record nor wait on the logical top-k event."""

from __future__ import annotations

import ast

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.contract import Files
from capdoctor.vendored_fixes.source import Source
from capdoctor.vendored_fixes.sparse_mla.helper import FILE, MODULE
from capdoctor.vendored_fixes.sparse_mla.reading import Survey, missing_helper, read, survey
from capdoctor.vendored_fixes.sparse_mla.scope import HELPER
from capdoctor.vendored_fixes.sparse_mla.sites import Kind, Site

__all__ = ["read", "rewrite"]


def rewrite(files: Files) -> dict[str, bytes]:
    """Give the changed files; the helper first, files that record the event last.

    In that order every tree in between is the old one or orders its streams as the new one:
    a wait may lose the event before the event goes, never the other way round.

    Raises:
        CannotDo: a site has a shape that this fix does not know.
    """
    from capdoctor.vendored_fixes.sparse_mla.context import with_helper

    seen = survey(files)
    changed: dict[str, bytes] = {}
    if seen.context is None and seen.needs_change:
        raise CannotDo(
            f"This tree has no {FILE}, which says whether a forward pass is piecewise.",
            "Give the whole vllm package as the target.",
        )
    if seen.unknown and seen.needs_change:
        raise CannotDo(
            f"{seen.unknown[0]} hands the event on in a way that this fix cannot follow.",
            "Nothing was written: a wait that is overlooked would become a silent race.",
        )
    if seen.context is not None and missing_helper(seen):
        changed[FILE] = with_helper(seen.context)
    for source, sites in _by_file(seen):
        changed[source.path] = _guarded(source, sites)
    return changed


def _by_file(seen: Survey) -> list[tuple[Source, list[Site]]]:
    grouped: dict[str, tuple[Source, list[Site]]] = {}
    for site in seen.needs_change:
        grouped.setdefault(site.source.path, (site.source, []))[1].append(site)
    records = {site.source.path for site in seen.sites if site.kind is Kind.RECORD}
    return sorted(grouped.values(), key=lambda pair: (pair[0].path in records, pair[0].path))


def _guarded(source: Source, sites: list[Site]) -> bytes:
    from capdoctor.vendored_fixes.rewriting import Import
    from capdoctor.vendored_fixes.rewriting import rewrite as carry_out
    from capdoctor.vendored_fixes.sparse_mla.plan import plan

    bound = _bound_helper(source)
    edits = [plan(site, bound or HELPER) for site in sites]
    return carry_out(source, edits, [] if bound else [Import(MODULE, HELPER)])


def _bound_helper(source: Source) -> str | None:
    """Give the name under which the module has the helper when it runs, if it has."""
    for node in source.tree.body:
        match node:
            case ast.ImportFrom(names=names):
                for alias in names:
                    if alias.name == HELPER:
                        return alias.asname or alias.name
            case ast.FunctionDef(name=name) if name == HELPER:
                return name
    return None
