"""From the end of the search to the answer that the user gets."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capdoctor.bisection.culprit_change import with_change
from capdoctor.bisection.history.commit_facts import CommitFacts, commit_facts
from capdoctor.bisection.islands import untestable_islands
from capdoctor.bisection.refine import Refined
from capdoctor.bisection.search.case import End, Ending
from capdoctor.bisection.suspicion import CONTROL, REVERT
from capdoctor.bisection.votes import Vote, votes
from capdoctor.errors import CannotDo
from capdoctor.model import BisectAnswer, BisectResult, Culprit, ProbeRun, ProbeVerdict

if TYPE_CHECKING:
    from capdoctor.bisection.campaign import Campaign

_KINDS = {
    Ending.FOUND: BisectAnswer.CULPRIT,
    Ending.UNCONFIRMED: BisectAnswer.CULPRIT_UNCONFIRMED,
    Ending.RANGE: BisectAnswer.RANGE,
    Ending.CLEAN_END_CRASHES: BisectAnswer.OUTSIDE_RANGE,
    Ending.BAD_END_CLEAN: BisectAnswer.NO_CULPRIT,
    Ending.END_UNTESTABLE: BisectAnswer.NO_CULPRIT,
}
_NAMED = (BisectAnswer.CULPRIT, BisectAnswer.CULPRIT_UNCONFIRMED)


def result_of(campaign: Campaign, end: End, refined: Refined) -> BisectResult:
    """Return the answer.

    Raises:
        CannotDo: an end could not be judged at all, so nothing was bisected.
    """
    cast = votes(campaign.story)
    kind, reasons = _kind(campaign, end, cast)
    candidates = _candidates(kind, end, refined)
    culprit = commit_facts(campaign.mirror, candidates[0]) if kind in _NAMED else None
    result = BisectResult(
        kind,
        as_culprit(culprit) if culprit else None,
        candidates,
        round(end.confidence, 4) if candidates else 0.0,
        campaign.story.reference.signature if campaign.story.reference else None,
        len(refined.line.commits) - 1,
        sum(1 for vote in cast if vote.run.purpose not in (CONTROL, REVERT)),
        sum(vote.run.observation.starts for vote in cast),
        round(campaign.elapsed, 1),
        tuple(as_probe(vote) for vote in cast),
        untestable_islands(refined.line, cast),
        resume_command(campaign.work),
        (*campaign.story.begin.notes, *reasons, *_remarks(end, refined, cast)),
    )
    return with_change(campaign, result, culprit) if culprit else result


def resume_command(work: object) -> str:
    """Return the command line that goes on with a bisection."""
    return f"capdoctor bisect resume {shlex.quote(str(work))}"


def as_culprit(facts: CommitFacts) -> Culprit:
    """Return a commit as the answer names it."""
    return Culprit(facts.sha, facts.title, facts.pr, facts.author_date)


def as_probe(vote: Vote) -> ProbeRun:
    """Return a run as the answer lists it."""
    seen = vote.run.observation
    reason = vote.judged.reason or seen.reason
    if vote.doubt:
        reason = f"not counted, {vote.doubt}: {reason}"
    if vote.judged.loosely:
        reason = f"same error, class and function, in code that has moved: {seen.title}"
    return ProbeRun(
        vote.run.sha,
        vote.judged.verdict,
        seen.signature,
        seen.provisioning,
        round(seen.seconds + seen.setup_seconds, 3),
        reason if vote.run.purpose not in (CONTROL, REVERT) else f"{vote.run.purpose}: {reason}",
    )


def _kind(
    campaign: Campaign, end: End, cast: tuple[Vote, ...]
) -> tuple[BisectAnswer, tuple[str, ...]]:
    at_bad = [vote for vote in cast if vote.run.sha == campaign.story.bad_end]
    otherwise = [vote for vote in at_bad if vote.judged.verdict is ProbeVerdict.OTHER]
    if end.ending in (Ending.END_UNTESTABLE, Ending.BAD_END_CLEAN) and otherwise:
        title = otherwise[-1].run.observation.title or "no signature"
        return BisectAnswer.NO_CULPRIT, (f"the bad end crashes otherwise: {title}",)
    if end.ending is Ending.END_UNTESTABLE:
        raise _unjudged(campaign, cast, at_bad)
    reasons = (end.reason,) if end.reason else ()
    if end.ending is Ending.CLEAN_END_CRASHES:
        title = campaign.story.reference.title if campaign.story.reference else ""
        reasons = (*reasons, f"both ends: {title}") if title else reasons
        reasons = (*reasons, "either the crash is older than the range, or the environment crashes")
    return _KINDS[end.ending], reasons


def _unjudged(campaign: Campaign, cast: tuple[Vote, ...], at_bad: Sequence[Vote]) -> CannotDo:
    which = "bad" if at_bad and all(not _voted(vote) for vote in at_bad) else "good"
    end = campaign.story.bad_end if which == "bad" else campaign.story.good_end
    silent = [vote for vote in cast if not _voted(vote) and vote.run.purpose != CONTROL]
    last = next((vote for vote in reversed(silent) if vote.run.sha == end), silent[-1])
    why = last.judged.reason or last.run.observation.reason or "no reason was given"
    return CannotDo(
        f"the {which} end {last.run.sha[:12]} cannot be judged: {why}",
        f"give a neighbouring commit; its log: {last.run.observation.log or campaign.work}",
    )


def _voted(vote: Vote) -> bool:
    return vote.judged.verdict in (ProbeVerdict.GOOD, ProbeVerdict.BAD)


def _candidates(kind: BisectAnswer, end: End, refined: Refined) -> tuple[str, ...]:
    if kind in (BisectAnswer.OUTSIDE_RANGE, BisectAnswer.NO_CULPRIT):
        return ()
    return refined.line.candidates(max(0, end.lo), end.hi)


def _remarks(end: End, refined: Refined, cast: tuple[Vote, ...]) -> tuple[str, ...]:
    said: list[str] = []
    if end.older:
        pairs = ", ".join(
            f"{refined.line.runs_at(a)[:12]} and {refined.line.runs_at(b)[:12]}"
            for a, b in end.older
        )
        said.append(f"the verdict changes more than once: also between {pairs}")
    if refined.refuted:
        said.append("commits that should change nothing had different verdicts: each one counts")
    if end.flaky:
        said.append(f"the crash is flaky: it comes in about {end.rate:.0%} of the runs")
    if any(vote.judged.loosely for vote in cast):
        said.append("some runs matched only the looser signature")
    return tuple(said)
