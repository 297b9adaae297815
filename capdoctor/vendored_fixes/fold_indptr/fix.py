"""The fold-indptr fix: the leading zero of a folded indptr is made on the device."""

from __future__ import annotations

from capdoctor.vendored_fixes.contract import Files
from capdoctor.vendored_fixes.fold_indptr.reading import read
from capdoctor.vendored_fixes.fold_indptr.sites import FUNCTION, Fold, find_folds
from capdoctor.vendored_fixes.fold_indptr.ways import Way
from capdoctor.vendored_fixes.source import parse

__all__ = ["read", "rewrite"]

_FAULTS = (Way.HOST_COPY, Way.HOST_BUILT)


def rewrite(files: Files) -> dict[str, bytes]:
    """Give the changed files.

    Raises:
        CannotDo: a file cannot be rewritten without touching what is not meant.
    """
    changed: dict[str, bytes] = {}
    for path, data in sorted(files.items()):
        if FUNCTION.encode() in data:
            folds = find_folds(parse(path, data))
            if faults := [fold for fold in folds if fold.way in _FAULTS]:
                changed[path] = _without_host_copies(faults)
    return changed


def _without_host_copies(folds: list[Fold]) -> bytes:
    from capdoctor.vendored_fixes.fold_indptr.padding import edits
    from capdoctor.vendored_fixes.rewriting import rewrite as carry_out

    source = folds[0].source
    return carry_out(source, [edit for fold in folds for edit in edits(fold)])
