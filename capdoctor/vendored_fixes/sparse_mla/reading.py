"""Decide the status of a tree from its sites: both halves or neither."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from capdoctor.model import FixSite, FixStatus
from capdoctor.vendored_fixes.contract import Files, Reading
from capdoctor.vendored_fixes.source import Source, Unreadable, parse
from capdoctor.vendored_fixes.sparse_mla.helper import FILE, ForwardContext, read_forward_context
from capdoctor.vendored_fixes.sparse_mla.scope import EVENT, HELPER, Scope
from capdoctor.vendored_fixes.sparse_mla.sites import (
    Kind,
    Site,
    State,
    defines_group,
    find_sites,
    never_in_piecewise,
)
from capdoctor.vendored_fixes.sparse_mla.uses import receivers_of, unknown_uses

BREAKABLE = "vllm/compilation/breakable_cudagraph.py"
# Callers that only have set_logical_topk_ready or record_logical_topk_ready do not count.
_MENTIONS = re.compile(rb"(?<![A-Za-z0-9_])" + EVENT.encode() + rb"(?![A-Za-z0-9_])")
_REASONS = {
    (
        Kind.RECORD,
        State.PLAIN,
    ): "records inside a captured segment in piecewise mode",
    (Kind.RECORD, State.GUARDED): "does not record in piecewise mode",
    (Kind.RECORD, State.EAGER): "records in a function that breaks out of the captured segment",
    (Kind.WAIT, State.PLAIN): "waits on the event in piecewise mode too",
    (Kind.WAIT, State.GUARDED): "waits for the whole compute stream in piecewise mode",
    (Kind.WAIT, State.EAGER): "waits on an event that is only recorded outside captured segments",
    (Kind.WAIT, State.UNORDERED): "in piecewise mode nothing orders this stream: a silent race",
}
_STATUS = {
    State.PLAIN: FixStatus.VULNERABLE,
    State.GUARDED: FixStatus.FIXED,
    State.EAGER: FixStatus.FIXED_DIFFERENTLY,
    State.UNORDERED: FixStatus.VULNERABLE,
}


@dataclass(frozen=True)
class Use:
    """A place where the event goes out of sight."""

    source: Source
    node: ast.expr

    def __str__(self) -> str:
        """Say where."""
        return f"{self.source.path} line {self.node.lineno}"


@dataclass(frozen=True)
class Survey:
    """Everything that a tree shows about this fix."""

    sites: tuple[Site, ...]
    context: ForwardContext | None
    has_group: bool
    has_piecewise: bool
    unreadable: tuple[FixSite, ...]
    unknown: tuple[Use, ...] = ()

    @property
    def needs_change(self) -> tuple[Site, ...]:
        """The sites that a change has to touch."""
        return tuple(s for s in self.sites if s.state in {State.PLAIN, State.UNORDERED})


def survey(files: Files) -> Survey:
    """Read every file that mentions the event, and the forward context."""
    sources: dict[str, Source] = {}
    unreadable: list[FixSite] = []
    for path, data in files.items():
        if path != FILE and not _MENTIONS.search(data):
            continue
        try:
            sources[path] = parse(path, data)
        except Unreadable as error:
            unreadable.append(FixSite(path, None, FixStatus.UNREADABLE, str(error)))
    opened = sources.pop(FILE, None)
    context = read_forward_context(opened) if opened else None
    sites = [site for source in sources.values() for site in find_sites(source)]
    return Survey(
        sites=tuple(_settled(sites)),
        context=context,
        has_group=any(defines_group(source) for source in sources.values()),
        has_piecewise=BREAKABLE in files or (context is not None and context.has_mode),
        unreadable=tuple(unreadable),
        unknown=tuple(_unknown(sites, sources.values())),
    )


def _unknown(sites: list[Site], sources: Iterable[Source]) -> Iterator[Use]:
    scopes = [Scope(source) for source in sources]
    receivers = {name for scope in scopes for name in receivers_of(scope)}
    calls = {site.call for site in sites}
    for scope in scopes:
        for node in unknown_uses(scope, calls, receivers):
            if not never_in_piecewise(scope, node):
                yield Use(scope.source, node)


def _settled(sites: list[Site]) -> list[Site]:
    """A plain wait is right if every record happens outside captured segments."""
    records = [site for site in sites if site.kind is Kind.RECORD]
    if not records or any(record.state is not State.EAGER for record in records):
        return sites
    eager = (State.PLAIN, State.EAGER)
    return [
        Site(s.scope, s.call, s.kind, s.stream, State.EAGER) if s.state in eager else s
        for s in sites
    ]


def judge(seen: Survey) -> Reading:
    """Give the status of the whole tree and of each site."""
    if seen.unreadable:
        return Reading(FixStatus.UNREADABLE, seen.unreadable, "a file of this fix cannot be read")
    if missing := _not_applicable(seen):
        return Reading(FixStatus.NOT_APPLICABLE, (), missing)
    sites = [_as_site(site) for site in seen.sites]
    if helper := missing_helper(seen):
        sites.append(helper)
    return Reading(_overall(sites), tuple(sites))


def _not_applicable(seen: Survey) -> str | None:
    kinds = {site.kind for site in seen.sites}
    if not seen.has_group:
        return "no file of this tree defines SparseMLAIndexGroup"
    lost = f"; {seen.unknown[0]} hands it on in a way that is not followed" if seen.unknown else ""
    if Kind.WAIT not in kinds:
        return f"nothing in this tree waits on {EVENT}{lost}"
    if Kind.RECORD not in kinds:
        unknown = "a layout that this fix does not know"
        return f"nothing in this tree records {EVENT}: {unknown}{lost}"
    if not seen.has_piecewise:
        return "this tree has no piecewise capture: no breakable graphs, no graph mode per forward"
    return None


def _as_site(site: Site) -> FixSite:
    return FixSite(
        file=site.source.path,
        function=site.source.name_of(site.call),
        status=_STATUS[site.state],
        reason=f"line {site.call.lineno} {_REASONS[site.kind, site.state]}",
    )


def missing_helper(seen: Survey) -> FixSite | None:
    """A guard that imports a helper which is not there is no guard: the import fails."""
    if seen.context is None or seen.context.has_helper:
        return None
    imported = any(HELPER.encode() in site.source.data for site in seen.sites)
    if not imported and not seen.needs_change:
        return None
    return FixSite(FILE, HELPER, FixStatus.VULNERABLE, "the helper is not there")


def _overall(sites: list[FixSite]) -> FixStatus:
    found = {site.status for site in sites}
    if FixStatus.VULNERABLE in found:
        return FixStatus.VULNERABLE if len(found) == 1 else FixStatus.PARTLY_FIXED
    return FixStatus.FIXED_DIFFERENTLY if FixStatus.FIXED_DIFFERENTLY in found else FixStatus.FIXED


def read(files: Files) -> Reading:
    """Give the status of a tree towards this fix."""
    return judge(survey(files))
