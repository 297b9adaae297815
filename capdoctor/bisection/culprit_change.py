"""What the culprit changed: something that ships, nothing, or only a dependency's version."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capdoctor.bisection.history.commit_facts import CommitFacts, changed_files
from capdoctor.bisection.history.gitcall import git
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.history.pins import MovedPin, is_pin_file, moved_pins
from capdoctor.bisection.refine import ships
from capdoctor.model import BisectAnswer, BisectResult

if TYPE_CHECKING:
    from capdoctor.bisection.campaign import Campaign


@dataclass(frozen=True, slots=True)
class _Change:
    """What the culprit changed."""

    files: tuple[str, ...]
    pins: tuple[MovedPin, ...]

    @property
    def only_pins(self) -> bool:
        return bool(self.pins) and all(is_pin_file(path) for path in self.files)


def with_change(campaign: Campaign, result: BisectResult, culprit: CommitFacts) -> BisectResult:
    """Return the result as what the culprit changed makes it: DEPENDENCY, or not confirmed."""
    if not culprit.parents:
        return result
    parent = culprit.parents[0]
    files = changed_files(campaign.mirror, culprit.sha)
    pinned = [path for path in files if is_pin_file(path)]
    change = _Change(files, moved_pins(campaign.mirror, parent, culprit.sha, pinned))
    if change.only_pins and result.answer is BisectAnswer.CULPRIT:
        return _dependency(campaign, result, change.pins)
    paths = ships(campaign.story, campaign.layout)
    if paths and _ships_the_same(campaign.mirror, paths, culprit.sha, parent):
        reason = "it ships exactly what its parent ships: suspect the environment"
        return replace(
            result,
            answer=BisectAnswer.CULPRIT_UNCONFIRMED,
            reasons=(*result.reasons, reason),
        )
    return result


def _ships_the_same(mirror: Mirror, paths: tuple[str, ...], sha: str, parent: str) -> bool:
    return not git(mirror.folder, "diff-tree", "-r", "--name-only", parent, sha, "--", *paths)


def _dependency(
    campaign: Campaign, result: BisectResult, pins: tuple[MovedPin, ...]
) -> BisectResult:
    moves = [f"{pin.package} {pin.before or 'none'} -> {pin.after or 'none'}" for pin in pins]
    return replace(
        result,
        answer=BisectAnswer.DEPENDENCY,
        reasons=(*result.reasons, f"it only moves {', '.join(moves)}"),
        next=tuple(next_bisection(campaign, pin) for pin in pins if pin.before and pin.after),
    )


def next_bisection(campaign: Campaign, pin: MovedPin) -> str:
    """Return the command line that bisects a dependency between its two pins."""
    request = campaign.story.begin.request
    repo = {"aiter": "aiter", "amd-aiter": "aiter", "vllm": "vllm"}.get(pin.package)
    ends = sorted((pin.before, pin.after), key=lambda end: end != pin.before)
    parts = ["capdoctor", "bisect", "--repo", repo or f"CLONE-OF-{pin.package.upper()}"]
    good, bad = reversed(ends) if request.find_fix else ends
    parts += ["--good", str(good), "--bad", str(bad)]
    if request.engine is not None:
        parts += ["--model", request.engine.model]
    if request.find_fix:
        parts.append("--find-fix")
    return shlex.join(parts)
