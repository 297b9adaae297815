"""How sure a diagnosis is: counted from the kinds of evidence that agree, never a constant.

``confirmed``: what the error is, where it was raised and at which stage all agree with the class,
or the driver itself says so. ``likely``: what the error is, and one of the other two. ``possible``:
one kind alone, or a rule that says of itself that it cannot tell neighbours apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.matching import Match
from capdoctor.diagnosis.staging import StageClaim
from capdoctor.model import Confidence

_ERROR = frozenset({"code", "name", "text", "text_all", "regex", "type", "exit"})
_PLACE = frozenset({"frame", "innermost", "source", "source_regex"})
_ORDER: tuple[Confidence, ...] = ("unknown", "possible", "likely", "confirmed")


def confidence_of(
    match: Match | None, root: Incident, stage: StageClaim, rivals: Iterable[Incident]
) -> Confidence:
    """Judge one answer; ``rivals`` are other roots that nothing explains."""
    if match is None:
        return "unknown"
    kinds = match.kinds
    decisive = match.decisive
    said = bool(kinds & _ERROR)
    placed = bool(kinds & _PLACE) or (decisive and bool(root.frames))
    staged = stage.stage is not None and stage.how in {"frame", "mark", "import", "facts"}
    traced = bool(root.frames) or root.kind != "python"
    level = _level(said, placed, staged, decisive or "driver_log" in kinds, traced)
    if root.truncated_head or root.cut_off:
        level = min(level, 2)
    others = [rival for rival in rivals if rival.kind != "death"]
    if others:  # one that breaks off may have been what ended the process
        level = min(level, 1 if any(rival.cut_off for rival in others) else 2)
    if stage.stage is None and "stage_not" in kinds:
        level = min(level, 1)  # the rule asks for the stage, and it is not known
    if match.at_most is not None:
        level = min(level, _ORDER.index(match.at_most))
    return _ORDER[level]


def _level(said: bool, placed: bool, staged: bool, conclusive: bool, traced: bool) -> int:
    if not said:
        return 1
    if placed and staged:
        return 3
    if conclusive:
        return 3 if (traced and staged) else 2
    if placed or (staged and traced):
        return 2
    return 1
