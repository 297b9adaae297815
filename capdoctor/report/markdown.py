"""A diagnosis as Markdown for an issue. Text of the log stands in code, where it is inert."""

from __future__ import annotations

from collections.abc import Iterator

from capdoctor.model import Diagnosis
from capdoctor.report.card import TITLES, error_text, frame_text, place_text
from capdoctor.report.safe_text import one_line, printable


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """Give the report: a heading, a table of facts, the evidence, what to do."""
    title = TITLES[diagnosis.verdict][0].capitalize()
    lines = [f"### {title}: `{diagnosis.crash_class}`", "", *_facts(diagnosis)]
    if diagnosis.cause:
        lines += ["", _prose(diagnosis.cause)]
    lines += [
        *_trace(diagnosis),
        *_evidence(diagnosis),
        *_follow_on(diagnosis),
        *_advice(diagnosis),
    ]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Give the text as inline code that no content can leave."""
    flat = one_line(text)
    longest = max((len(run) for run in _backtick_runs(flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}" if flat else "-"


def _backtick_runs(text: str) -> Iterator[str]:
    run = ""
    for char in text:
        if char == "`":
            run += char
        else:
            if run:
                yield run
            run = ""
    if run:
        yield run


def _prose(text: str) -> str:
    """Our own sentences may still quote a log: neutralise what Markdown would read."""
    flat = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return flat.replace("`", "\\`").replace("[", "\\[").replace("@", "@\u200b")


def _facts(diagnosis: Diagnosis) -> Iterator[str]:
    rows = {
        "stage": diagnosis.stage.value if diagnosis.stage else "",
        "error": error_text(diagnosis.error),
        "root frame": frame_text(diagnosis.root_frame),
        "component": diagnosis.component or "",
        "confidence": diagnosis.confidence,
        "fingerprint": diagnosis.fingerprint or "",
    }
    rows |= {
        name: f"{claim.value} ({claim.source})"
        for name, claim in sorted(diagnosis.versions.items())
    }
    yield "| | |"
    yield "|---|---|"
    for name, value in rows.items():
        if value:
            # A pipe would end the cell even inside code.
            yield f"| {name} | {code(value).replace('|', chr(92) + '|')} |"


def _trace(diagnosis: Diagnosis) -> Iterator[str]:
    """The operation that broke the capture, with its Python stack, innermost line first."""
    if diagnosis.trace is None:
        return
    from capdoctor.report.trace_text import call_text, calls_of, circumstances

    yield from ("", "**Seen by the capture tracer**", "")
    for role, call in calls_of(diagnosis.trace):
        known = f" ({_prose(circumstances(call))})" if circumstances(call) else ""
        yield f"- {_prose(role.clause)}: {code(call_text(call))}{known}"
        for frame in reversed(call.stack):
            yield f"  - {code(frame_text(frame))}"


def _evidence(diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.evidence:
        return
    yield from ("", "**Evidence**", "")
    for item in diagnosis.evidence:
        place = place_text(item.line, item.source)
        yield f"- {place}: {code(item.text)} ({_prose(item.why)})"


def _follow_on(diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.follow_on:
        return
    yield from ("", "**Not the cause**", "")
    for item in diagnosis.follow_on:
        text = f"{item.type}: {item.message}" if item.type else item.message
        yield f"- {place_text(item.line)}: {code(text)} ({_prose(item.why)})"


def _advice(diagnosis: Diagnosis) -> Iterator[str]:
    known = diagnosis.known_issue
    if known is not None:
        parts = [f"[{_prose(known.title)}]({printable(known.url)})"]
        parts += [f"introduced by {_prose(known.introduced_by)}"] if known.introduced_by else []
        parts += [f"fixed in {_prose(known.fixed_in)}"] if known.fixed_in else []
        yield from ("", "**Known issue**: " + ", ".join(parts))
    if diagnosis.fix:
        yield from ("", f"**Fix**: `capdoctor apply-fix {diagnosis.fix}`")
    if diagnosis.workarounds:
        yield from ("", "**Workarounds**", "")
        for item in diagnosis.workarounds:
            yield f"- {code(item.do)}: {_prose(item.cost)}"
    if diagnosis.next:
        yield from ("", "**Next**", "")
        yield from (f"- {code(command)}" for command in diagnosis.next)
