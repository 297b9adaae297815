"""The answer as one Markdown page, ready to be pasted into an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator

from capdoctor.model import BisectAnswer, BisectResult, ProbeRun
from capdoctor.report.safe_text import one_line

SHORT = 12
MANY = 30
NOT_RUN = "not run: its neighbours cannot be judged"
_HEADLINES = {
    BisectAnswer.CULPRIT: "Culprit found and confirmed",
    BisectAnswer.CULPRIT_UNCONFIRMED: "Likely culprit, not confirmed",
    BisectAnswer.RANGE: "Narrowed down to a range",
    BisectAnswer.OUTSIDE_RANGE: "The cause lies outside the range",
    BisectAnswer.NO_CULPRIT: "No culprit",
    BisectAnswer.DEPENDENCY: "A dependency was moved",
}


def markdown(result: BisectResult) -> str:
    """Return the report of a bisection; text of strangers (titles, errors) cannot become markup."""
    return "\n".join(_lines(result)).rstrip() + "\n"


def _lines(result: BisectResult) -> Iterator[str]:
    yield f"## {_HEADLINES[result.answer]}"
    yield ""
    yield from _facts(result)
    yield from _section("Why", (_plain(reason) for reason in result.reasons))
    yield from _candidates(result)
    yield from _islands(result)
    yield from _probes(result)
    yield from _section("Next", (_code(line) for line in result.next))
    if result.resume_command:
        yield f"Resume: {_code(result.resume_command)}"


def _facts(result: BisectResult) -> Iterator[str]:
    culprit = result.culprit
    if culprit:
        yield f"- commit: {_code(culprit.sha)}"
        yield f"- title: {_plain(culprit.title)}"
        yield f"- pull request: {culprit.pr or 'none named'}"
        yield f"- author date: {culprit.author_date}"
    if result.candidates:
        yield f"- confidence: {result.confidence:.2%}"
    if result.signature:
        yield f"- signature: `{result.signature}`"
    yield (
        f"- {result.range_size} commits, {result.runs} runs, {result.engine_starts} engine "
        f"starts, {_duration(result.seconds)}"
    )
    yield ""


def _section(title: str, items: Iterator[str]) -> Iterator[str]:
    listed = [f"- {item}" for item in items]
    if listed:
        yield from (f"### {title}", "", *listed, "")


def _candidates(result: BisectResult) -> Iterator[str]:
    if len(result.candidates) < 2:  # noqa: PLR2004 - one is the culprit itself
        return
    why = {probe.sha: probe.reason for probe in result.probes}
    yield from (f"### Candidates ({len(result.candidates)})", "")
    for sha in result.candidates[:MANY]:
        yield f"- `{sha[:SHORT]}` {_plain(why.get(sha, NOT_RUN))}"
    if len(result.candidates) > MANY:
        yield f"- and {len(result.candidates) - MANY} more"
    yield ""


def _islands(result: BisectResult) -> Iterator[str]:
    if not result.islands:
        return
    yield from ("### Commits that cannot be judged", "", "| from | to | commits | why |")
    yield "|---|---|---|---|"
    for island in result.islands:
        first, last = island.first[:SHORT], island.last[:SHORT]
        yield f"| `{first}` | `{last}` | {island.length} | {_plain(island.reason)} |"
    yield ""


def _probes(result: BisectResult) -> Iterator[str]:
    if not result.probes:
        return
    yield from ("### Runs", "", "| commit | verdict | signature | how | seconds | |")
    yield "|---|---|---|---|---|---|"
    yield from (_row(probe) for probe in result.probes)
    yield ""


def _row(probe: ProbeRun) -> str:
    signature = f"`{probe.signature}`" if probe.signature else ""
    cells = (f"`{probe.sha[:SHORT]}`", probe.verdict, signature, probe.provisioning)
    return f"| {' | '.join(cells)} | {probe.seconds:.1f} | {_plain(probe.reason)} |"


def _plain(text: str) -> str:
    """Escape what Markdown or HTML would take for markup, and keep it on one line.

    An escaped ``@`` still notifies whoever is called like that: an empty comment keeps it apart.
    """
    escaped = re.sub(r"([\\`*_{}\[\]<>|#~&])", r"\\\1", one_line(text))
    return escaped.replace("@", "@<!-- -->")


def _code(text: str) -> str:
    """Return the text as a code span, however many backticks are in it."""
    flat = one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", flat)), default=0))
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
