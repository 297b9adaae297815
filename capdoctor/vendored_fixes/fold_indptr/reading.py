"""Decide the status of a tree: no element of the result may be written from the host."""

from __future__ import annotations

from capdoctor.model import FixSite, FixStatus
from capdoctor.vendored_fixes.contract import Files, Reading
from capdoctor.vendored_fixes.fold_indptr.sites import FUNCTION, Fold, find_folds
from capdoctor.vendored_fixes.fold_indptr.ways import Way
from capdoctor.vendored_fixes.source import Unreadable, parse

_MEANS = {
    Way.HOST_COPY: (FixStatus.VULNERABLE, "copies the leading zero from the host"),
    Way.HOST_BUILT: (FixStatus.VULNERABLE, "makes a zero on the host and copies it"),
    Way.PAD: (FixStatus.FIXED, "pads on the device"),
    Way.SLICE_FILL: (FixStatus.FIXED, "fills a slice, which needs no copy"),
    Way.ON_DEVICE: (FixStatus.FIXED_DIFFERENTLY, "sets the zero on the device"),
    Way.JOINED: (FixStatus.FIXED_DIFFERENTLY, "joins a zero that is made on the device"),
    Way.ZEROS: (FixStatus.FIXED_DIFFERENTLY, "starts from zeros"),
    Way.NO_STORE: (FixStatus.FIXED_DIFFERENTLY, "writes no element from the host"),
    Way.OTHER_SCALAR: (
        FixStatus.NOT_APPLICABLE,
        "writes one element, but not a zero at index 0: left as it is",
    ),
    Way.NO_RESULT: (FixStatus.NOT_APPLICABLE, "returns no tensor"),
}


def read(files: Files) -> Reading:
    """Give the status of a tree towards this fix."""
    sites: list[FixSite] = []
    for path, data in files.items():
        if FUNCTION.encode() not in data:
            continue
        try:
            folds = find_folds(parse(path, data))
        except Unreadable as error:
            sites.append(FixSite(path, None, FixStatus.UNREADABLE, str(error)))
            continue
        sites += [_as_site(fold) for fold in folds]
    return _judge(sites)


def _as_site(fold: Fold) -> FixSite:
    status, reason = _MEANS[fold.way]
    name = fold.source.name_of(fold.function)
    return FixSite(fold.source.path, name, status, f"line {fold.line} {reason}")


def _judge(sites: list[FixSite]) -> Reading:
    found = {site.status for site in sites}
    if not sites:
        return Reading(FixStatus.NOT_APPLICABLE, (), f"no file of this tree defines {FUNCTION}")
    if FixStatus.UNREADABLE in found:
        return Reading(FixStatus.UNREADABLE, tuple(sites), "a file of this fix cannot be read")
    found.discard(FixStatus.NOT_APPLICABLE)
    if not found:
        return Reading(FixStatus.NOT_APPLICABLE, tuple(sites), sites[0].reason)
    if FixStatus.VULNERABLE in found:
        status = FixStatus.VULNERABLE if len(found) == 1 else FixStatus.PARTLY_FIXED
        return Reading(status, tuple(sites))
    different = FixStatus.FIXED_DIFFERENTLY in found
    return Reading(FixStatus.FIXED_DIFFERENTLY if different else FixStatus.FIXED, tuple(sites))
