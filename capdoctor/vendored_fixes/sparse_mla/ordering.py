"""What has to run in piecewise mode instead of a wait on the event."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.source import Function, Source, last_name
from capdoctor.vendored_fixes.sparse_mla.sites import Kind, Site, find_sites
from capdoctor.vendored_fixes.sparse_mla.streams import (
    CURRENT,
    is_current,
    named_stream,
    stream_around,
)


def stand_in(site: Site) -> str | None:
    """Give ``stream.wait_stream(compute)`` for a wait; None where the compute stream waits itself.

    Raises:
        CannotDo: the file shows no way to name the compute stream there.
    """
    if site.stream is None:
        return None
    compute = next(_compute_streams(site), None)
    if compute is None:
        raise CannotDo(
            f"{site.source.path} line {site.call.lineno}: the compute stream has no name there.",
            "Nothing was written: the wait that piecewise mode needs cannot be spelled.",
        )
    return f"{ast.unparse(site.stream)}.wait_stream({compute})"


def _compute_streams(site: Site) -> Iterator[str]:
    """Give ways to spell the compute stream at the site, the nearest first."""
    source, place = site.source, site.source.function_of(site.call)
    wanted = ast.dump(site.scope.resolve(site.stream)) if site.stream else ""
    # Inside ``with side_stream:`` asking for the current stream gives the one that has to wait.
    is_elsewhere = stream_around(source, site.call) is not None
    for node in ast.walk(place or source.tree):
        match node:
            case ast.Call(func=ast.Attribute(value=other, attr="wait_stream"), args=[compute]):
                named = named_stream(source, node, other) or other
                if ast.dump(site.scope.resolve(named)) != wanted or not _reaches(site, compute):
                    continue
                if not is_current(compute) or not is_elsewhere:
                    yield ast.unparse(compute)
    for node in ast.walk(place or source.tree):
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=ast.Call(func=function)):
                inside = stream_around(source, target) is not None
                if last_name(function) == CURRENT and not inside and _reaches(site, target):
                    yield target.id
    if not is_elsewhere:
        yield from _module_wide(source)


def _module_wide(source: Source) -> Iterator[str]:
    imported = {
        alias.asname or alias.name
        for node in source.tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == CURRENT
    }
    yield from (f"{name}()" for name in sorted(imported))
    for record in find_sites(source):
        if record.kind is Kind.RECORD:
            for argument in record.call.args:
                if is_current(argument):
                    yield ast.unparse(argument)


def _reaches(site: Site, value: ast.expr) -> bool:
    """Say whether every local name in ``value`` has certainly been given a value at the site."""
    function = site.source.function_of(site.call)
    if function is None:
        return False
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return all(_is_set(site, function, name) for name in names)


def _is_set(site: Site, function: Function, name: str) -> bool:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if any(argument.arg == name for argument in every):
        return True
    stores = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
    ]
    if not stores:
        return True  # a global
    return any(_comes_before(site, store) for store in stores)


def _comes_before(site: Site, store: ast.Name) -> bool:
    """A store in an earlier statement of a block around the site has happened."""
    statement = site.source.statement_of(store)
    for around in [site.call, *site.source.ancestors(site.call)]:
        block = site.source.block_of(around)
        if statement in block and block.index(statement) < block.index(around):  # type: ignore[arg-type]
            return True
    return False
