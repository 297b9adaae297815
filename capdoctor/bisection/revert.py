"""Does the crash go away at the bad end when the culprit alone is reverted?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from capdoctor.bisection.history.gitcall import GitFailed, git
from capdoctor.bisection.provisioning.worktrees import Worktrees
from capdoctor.bisection.suspicion import REVERT
from capdoctor.bisection.verdicts import judge
from capdoctor.model import BisectResult, ProbeVerdict

if TYPE_CHECKING:
    from capdoctor.bisection.campaign import Campaign

_AUTHOR = ("-c", "user.name=capdoctor", "-c", "user.email=capdoctor@localhost")


def revert_check(campaign: Campaign, result: BisectResult) -> BisectResult:
    """Return the result with what the check found among its reasons."""
    if result.culprit is None:
        return result
    reverted = _reverted(campaign, result.culprit.sha)
    if reverted is None:
        return _saying(result, "it cannot be reverted at the bad end without a conflict")
    seen = campaign.run_once(reverted, REVERT)
    verdict = judge(seen, campaign.story.reference).verdict
    if verdict is ProbeVerdict.GOOD:
        return _saying(result, "with it reverted, the bad end does not crash")
    if verdict is ProbeVerdict.BAD:
        return _saying(result, "with it reverted, the bad end crashes still: another cause as well")
    return _saying(
        result, f"with it reverted, the bad end cannot be judged: {seen.title or seen.reason}"
    )


def _saying(result: BisectResult, sentence: str) -> BisectResult:
    return replace(result, reasons=(*result.reasons, sentence))


def _reverted(campaign: Campaign, culprit: str) -> str | None:
    """Make a commit in the private repository: the bad end without the culprit."""
    trees = Worktrees(campaign.mirror, campaign.work / "worktrees")
    path = trees.checkout(0, campaign.story.bad_end)
    parents = git(path, "show", "-s", "--format=%P", culprit).split()
    main = ("-m", "1") if len(parents) > 1 else ()
    try:
        git(path, *_AUTHOR, "revert", "--no-commit", *main, culprit)
    except GitFailed:
        return None
    return _commit(path, campaign.story.bad_end)


def _commit(path: Path, parent: str) -> str:
    """Commit the index with the parent's dates, so that the same revert has the same id."""
    git(path, "add", "--all")
    tree = git(path, "write-tree").strip()
    date = git(path, "show", "-s", "--format=%ct +0000", parent).strip()
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    made = git(path, *_AUTHOR, "commit-tree", tree, "-p", parent, "-m", "revert", env=dates)
    return made.strip()
