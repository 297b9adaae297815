"""What a check found, as text and as SARIF; and, apart from it, what the static pass suspects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from capdoctor import __version__
from capdoctor.model import Candidate, CheckResult, Finding, Json, StaticResult
from capdoctor.report.card import CardLine, Tone, frame_text
from capdoctor.report.safe_text import one_line, printable

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_STACK_SHOWN = 4
_LEVELS = {"likely": "warning", "possible": "note", "weak": "none"}


def check_card(results: Sequence[CheckResult]) -> tuple[CardLine, ...]:
    """Give the lines of the answer: a headline a target, then its findings."""
    return tuple(line for result in results for line in _result_lines(result))


def _result_lines(result: CheckResult) -> Iterator[CardLine]:
    count = len(result.findings)
    name = one_line(result.target)
    if count:
        what = f"{count} operation{'s' if count > 1 else ''} illegal in a capture: {name}"
        yield CardLine("", what, "bad")
    else:
        yield CardLine("", f"legal in a capture: {name}", "good")
    for finding in result.findings:
        yield from _finding_lines(finding)
    yield CardLine("covered", f"{result.covered.operations} operations on the device", "quiet")
    for unknown in result.covered.unknown:
        yield CardLine("not seen", one_line(unknown), "quiet")


def _finding_lines(finding: Finding) -> Iterator[CardLine]:
    place = f"{one_line(finding.file)}:{finding.line} in {one_line(finding.function)}"
    yield CardLine("at", f"{place}: {one_line(finding.operation, 120)}", "bad")
    raised = finding.would_raise
    code = f" ({raised.code})" if raised.code is not None else ""
    first = raised.message.split("\n", 1)[0]
    yield CardLine("would raise", f"{one_line(raised.type)}: {one_line(first, 200)}{code}")
    if finding.invalidates:
        yield CardLine("", "  and the capture is invalidated: everything after it fails", "quiet")
    for frame in finding.stack[-_STACK_SHOWN - 1 : -1]:
        yield CardLine("called from", frame_text(frame), "quiet")
    if finding.legal_way:
        yield CardLine("instead", one_line(finding.legal_way))
    yield CardLine("rule", one_line(finding.rule), "quiet")


def static_card(result: StaticResult, shown: Sequence[Candidate]) -> tuple[CardLine, ...]:
    """Give the lines of the static pass; every one says that nothing was run."""
    return tuple(_static_lines(result, shown))


def _static_lines(result: StaticResult, shown: Sequence[Candidate]) -> Iterator[CardLine]:
    count = f"{len(shown)} candidate{'' if len(shown) == 1 else 's'}"
    where = f"in {result.files} files of {one_line(result.target)}"
    yield CardLine("", f"{count} {where}; read, not run: nothing here is proven", "plain")
    for item in shown:
        place = f"{one_line(item.file)}:{item.line} in {one_line(item.function)}"
        tone: Tone = "bad" if item.certainty == "likely" else "plain"
        yield CardLine(item.certainty, f"{place}: {one_line(item.operation, 120)}", tone)
        yield CardLine("", f"  {one_line(item.message)} ({one_line(item.why)})", "quiet")
        yield CardLine("instead", one_line(item.legal_way), "quiet")
    hidden = len(result.candidates) - len(shown)
    if hidden:
        yield CardLine("not shown", f"{hidden} weaker candidates (--certainty weak)", "quiet")
    for line in result.unreadable:
        yield CardLine("not read", one_line(line), "quiet")


def check_sarif(results: Sequence[CheckResult], candidates: Sequence[Candidate] = ()) -> str:
    """Give SARIF 2.1.0: findings as errors, candidates at most as warnings."""
    rules = sorted({f.rule for r in results for f in r.findings} | {c.rule for c in candidates})
    found: list[Json] = [_finding(f, rules) for r in results for f in r.findings]
    found += [_candidate(c, rules) for c in candidates]
    driver: dict[str, Json] = {
        "name": "capdoctor",
        "version": __version__,
        "rules": [{"id": rule} for rule in rules],
    }
    run: dict[str, Json] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": found,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _finding(finding: Finding, rules: list[str]) -> Json:
    text = f"{finding.would_raise.type}: {finding.would_raise.message}"
    advice = f" Instead: {finding.legal_way}" if finding.legal_way else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": "error",
        "message": {"text": printable(f"{finding.operation}: {text}{advice}")},
        "locations": [_location(finding.file, finding.line, finding.function)],
        "properties": {"proven": True, "invalidates": finding.invalidates},
    }


def _candidate(item: Candidate, rules: list[str]) -> Json:
    return {
        "ruleId": item.rule,
        "ruleIndex": rules.index(item.rule),
        "level": _LEVELS[item.certainty],
        "message": {"text": printable(f"{item.operation}: {item.message}. {item.legal_way}")},
        "locations": [_location(item.file, item.line, item.function)],
        "properties": {"proven": False, "certainty": item.certainty, "why": item.why},
    }


def _location(file: str, line: int, function: str) -> Json:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file, errors="surrogatepass")},
            "region": {"startLine": max(1, line)},
        },
        "logicalLocations": [{"fullyQualifiedName": one_line(function)}],
    }
