"""Find how each ``_fold_seqlen_indptr`` writes the leading zero of what it returns."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from capdoctor.vendored_fixes.fold_indptr.stores import Store, host_built, host_stores
from capdoctor.vendored_fixes.fold_indptr.tensors import tensor_names
from capdoctor.vendored_fixes.fold_indptr.ways import Way, other_way
from capdoctor.vendored_fixes.source import Function, Source

FUNCTION = "_fold_seqlen_indptr"


@dataclass(frozen=True)
class Fold:
    """One definition, and one fault of it if it has any.

    ``store`` writes the leading zero from the host, ``built`` makes a zero there and copies it.
    """

    source: Source
    function: Function
    way: Way
    store: Store | None = None
    built: ast.Call | None = None
    line: int = 0

    @property
    def name(self) -> str | None:
        """The tensor that the leading zero is stored into, where that is a plain name."""
        base = self.store.target.value if self.store else None
        return base.id if isinstance(base, ast.Name) else None


def find_folds(source: Source) -> list[Fold]:
    """Give every fault of every definition, or the way that one without a fault has.

    Definitions count wherever they are: in a class, in another function, in an ``if``.
    """
    functions = [
        node for node in source.nodes if isinstance(node, Function) and node.name == FUNCTION
    ]
    functions.sort(key=lambda function: function.lineno)
    return [fold for function in functions for fold in _folds(source, function)]


def _folds(source: Source, function: Function) -> list[Fold]:
    names = tensor_names(function)
    stores = host_stores(source, function, names)
    found = [
        Fold(source, function, Way.HOST_COPY, store=store, line=store.target.lineno)
        for store in stores
        if store.is_zero
    ]
    found += [
        Fold(source, function, Way.HOST_BUILT, built=call, line=call.lineno)
        for call in host_built(source, function)
    ]
    if found:
        return found
    if stores:
        return [Fold(source, function, Way.OTHER_SCALAR, line=stores[0].target.lineno)]
    way, line = other_way(function, names)
    return [Fold(source, function, way, line=line)]
