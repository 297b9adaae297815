"""The verdicts as a file that ``git bisect replay`` reads."""

from __future__ import annotations

from collections import Counter

from capdoctor.bisection.journal.story import Story
from capdoctor.bisection.votes import votes
from capdoctor.model import ProbeVerdict


def replay_lines(story: Story) -> str:
    """Return the file: good, bad and skip lines, one commit each, in the order they were judged.

    In a search for a fix git's terms are turned round with ``--term-old`` and ``--term-new``.
    """
    begin = story.begin
    old, new = ("broken", "fixed") if begin.request.find_fix else ("good", "bad")
    words = ["--first-parent"] if begin.request.first_parent else []
    words += [f"--term-old={old}", f"--term-new={new}"] if begin.request.find_fix else []
    # git reads the line back only if every word is quoted.
    quoted = " ".join(f"'{word}'" for word in (*words, begin.newer, begin.older))
    lines = [
        f"# {new}: [{begin.newer}]",
        f"# {old}: [{begin.older}]",
        f"git bisect start {quoted}",
    ]
    ends = {begin.newer, begin.older}
    for sha, verdict in _verdicts(story).items():
        if sha not in ends:
            lines.append(f"git bisect {_word(verdict, old, new, begin.request.find_fix)} {sha}")
    return "\n".join(lines) + "\n"


def _verdicts(story: Story) -> dict[str, ProbeVerdict]:
    """Return one verdict a commit: a crash wins over a clean run, a vote over none."""
    counted: dict[str, Counter[ProbeVerdict]] = {}
    for vote in votes(story):
        if vote.counts and vote.judged.verdict is not ProbeVerdict.INFRA:
            counted.setdefault(vote.run.sha, Counter())[vote.judged.verdict] += 1
    order = (ProbeVerdict.BAD, ProbeVerdict.GOOD)
    return {
        sha: next((one for one in order if found[one]), ProbeVerdict.UNBUILDABLE)
        for sha, found in counted.items()
    }


def _word(verdict: ProbeVerdict, old: str, new: str, turned: bool) -> str:
    if verdict is ProbeVerdict.BAD:
        return old if turned else new
    if verdict is ProbeVerdict.GOOD:
        return new if turned else old
    return "skip"
