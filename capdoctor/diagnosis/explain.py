"""Typed links: which incident explains which. What nothing explains is a root.

The rows of ``data/follow_ons.toml`` say which errors only pass on what happened elsewhere; the
rest follows from structure: chains, quotations, groups, ranks that print the same, and deaths of
processes that had said why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from capdoctor.diagnosis.incident import Explanation, Incident
from capdoctor.diagnosis.tables import table
from capdoctor.logs import Run

Explained = dict[int, Explanation]

_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?")
_CAPTURE_CODES = frozenset({1, 800, 900, 902, 903, 904, 905, 906, 907, 908})
_ENDINGS = frozenset({"KeyboardInterrupt", "SystemExit", "CancelledError"})


def explain(incidents: Sequence[Incident], run: Run) -> Explained:
    """Give the explanation of every incident that is not a root of its own."""
    found: Explained = {}
    for step in (_structure, _passed_on, _repeats, _deaths):
        step(incidents, found)
    _after_interrupt(incidents, found, run)
    return found


def _add(found: Explained, incident: Incident, explanation: Explanation) -> None:
    """Keep the first explanation; one that would close a circle explains nothing."""
    if incident.index in found:
        return
    cause = explanation.cause
    while cause is not None:
        if cause == incident.index:
            return
        onward = found.get(cause)
        cause = onward.cause if onward else None
    found[incident.index] = explanation


def _structure(incidents: Sequence[Incident], found: Explained) -> None:
    for one in incidents:
        if one.quoted_in is not None:
            outer = incidents[one.quoted_in]
            _add(found, outer, Explanation(one.index, "its message quotes the cause", rule="quote"))
    for one in incidents:
        if one.member_of is not None:
            group = incidents[one.member_of]
            _add(found, group, Explanation(one.index, "a group around its members", rule="group"))
        if one.raised_from is not None:
            why = "raised while the earlier error was being handled"
            _add(found, one, Explanation(one.raised_from, why, rule="chain"))


def _passed_on(incidents: Sequence[Incident], found: Explained) -> None:
    rows = table("follow_ons")["rows"]
    rows_of = {
        one.index: next((row for row in rows if fits_row(one, row)), None) for one in incidents
    }
    for one in incidents:
        if one.index in found and found[one.index].rule != "chain":
            continue
        row = rows_of.get(one.index)
        if row is None:
            continue
        upstream = [o for o in incidents if _level(rows_of.get(o.index)) < row["level"]]
        cause = _LOOK[row["cause"]](one, upstream, found)
        if cause is None and row.get("soft"):
            continue
        chained = found.get(one.index)
        if chained is not None:
            cause = chained.cause
            del found[one.index]
        said = Explanation(cause, row["why"], row["show"], row["id"], row["level"])
        _add(found, one, said)


def _level(row: dict[str, Any] | None) -> int:
    return int(row["level"]) if row is not None else 0


def fits_row(one: Incident, row: dict[str, Any]) -> bool:
    """Whether an incident is what a row of the follow-on table describes."""
    if one.kind == "death":
        return False
    tests: list[bool] = []
    if "type" in row:
        tests.append(one.type in row["type"] or one.short_type in row["type"])
    if "text" in row:
        lowered = one.message.lower()
        tests.append(any(text.lower() in lowered for text in row["text"]))
    if "message" in row:
        tests.append(one.message.strip() in row["message"])
    if "code" in row:
        tests.append(one.driver is not None and one.driver.code in row["code"])
    if "name" in row:
        tests.append(one.driver is not None and one.driver.name in row["name"])
    return bool(tests) and all(tests)


def _is_weak(one: Incident) -> bool:
    """A warning, or the way out of a process: explains nothing that failed."""
    return one.level in {"WARNING", "INFO", "DEBUG"} or one.short_type in _ENDINGS


def _is_plain_exit(one: Incident) -> bool:
    """A process that ended with an ordinary failure code: it says nothing about why."""
    death = one.death
    if death is None:
        return False
    relayed = death.source in table("native_kinds")["relayed_deaths"]
    return relayed or (death.signal is None and death.exit_code not in {None, 0})


def _candidates(one: Incident, incidents: Sequence[Incident], found: Explained) -> list[Incident]:
    """What may explain: not the incident itself, not what it explains, nothing harmless."""
    return [
        other
        for other in incidents
        if other.index != one.index
        and not _is_weak(other)
        and not _is_plain_exit(other)
        and other.quoted_in != one.index
        and not _leads_to(other.index, one.index, found)
        and not (other.index in found and found[other.index].cause is None)
    ]


def _leads_to(start: int, goal: int, found: Explained) -> bool:
    seen: set[int] = set()
    at: int | None = start
    while at is not None and at not in seen:
        if at == goal:
            return True
        seen.add(at)
        at = found[at].cause if at in found else None
    return False


def _look_worker(one: Incident, incidents: Sequence[Incident], found: Explained) -> int | None:
    others = [other for other in _candidates(one, incidents, found) if other.role != "frontend"]
    quoted = re.search(r"Worker failed with error '(.*)", one.message)
    if quoted and quoted.group(1).strip("' ,"):
        wanted = quoted.group(1).split("', please check")[0].strip()
        for other in others:
            if other.kind != "death" and wanted and wanted in other.message:
                return other.index
    return _nearest(one, [other for other in others if other.role != "engine"] or others)


def _look_engine(one: Incident, incidents: Sequence[Incident], found: Explained) -> int | None:
    return _nearest(one, _candidates(one, incidents, found))


def _look_capture(one: Incident, incidents: Sequence[Incident], found: Explained) -> int | None:
    if one.raised_from is not None:
        return one.raised_from
    earlier = [
        other
        for other in _candidates(one, incidents, found)
        if other.line < one.line and _may_break_a_capture(other)
    ]
    own = [other for other in earlier if other.stream.same_process(one.stream)]
    return _nearest(one, own or earlier)


def _may_break_a_capture(other: Incident) -> bool:
    if other.driver is not None and other.driver.code is not None:
        return other.driver.code in _CAPTURE_CODES or other.driver.sticky
    return "captur" in other.message.lower() or other.driver is not None


def _nearest(one: Incident, others: list[Incident]) -> int | None:
    """The last one before, else the first after (streams interleave)."""
    before = [other for other in others if other.line <= one.line]
    if before:
        return before[-1].index
    return others[0].index if others else None


_Look = Callable[[Incident, Sequence[Incident], Explained], int | None]
_LOOK: dict[str, _Look] = {
    "worker": _look_worker,
    "engine": _look_engine,
    "any": _look_engine,
    "capture": _look_capture,
}


def normalised(text: str) -> str:
    """A message without what differs between ranks: numbers and addresses."""
    return _NUMBERS.sub("#", text).strip()


def _sameness(one: Incident) -> tuple[str | None, str, tuple[str | None, ...]]:
    functions = tuple(frame.function for frame in one.frames[-3:])
    return (one.type, normalised(one.first_line_of_message), functions)


def _repeats(incidents: Sequence[Incident], found: Explained) -> None:
    seen: dict[tuple[str | None, str, tuple[str | None, ...]], Incident] = {}
    codes: dict[tuple[str, int], Incident] = {}
    for one in incidents:
        if one.index in found or one.kind == "death" or _is_weak(one):
            continue
        key = _sameness(one)
        first = seen.setdefault(key, one)
        if first is not one:
            own = first.stream.same_process(one.stream)
            why = "the same error printed again" if own else "another rank failed in the same way"
            _add(found, one, Explanation(first.index, why, rule="repeat"))
            continue
        _same_code(one, codes, found)


def _same_code(one: Incident, codes: dict[tuple[str, int], Incident], found: Explained) -> None:
    if one.driver is None or one.driver.code is None:
        return
    key = (one.driver.api, one.driver.code)
    first = codes.setdefault(key, one)
    if first is not one and (one.driver.sticky or one.kind == "native"):
        why = "the same driver error, noticed again"
        _add(found, one, Explanation(first.index, why, rule="same-code"))


def _deaths(incidents: Sequence[Incident], found: Explained) -> None:
    for one in incidents:
        if one.kind != "death" or one.index in found:
            continue
        others = [
            o for o in incidents if o.kind != "death" and not _is_weak(o) and _told_why(o, found)
        ]
        before = [other for other in others if other.line <= one.line]
        reason = before[-1:] or [other for other in others if other.kind == "native"][:1]
        if reason:
            why = "the process ended because of the error"
            _add(found, one, Explanation(reason[0].index, why, rule="death"))
    deaths = [o for o in incidents if o.kind == "death" and o.index not in found]
    for later in deaths[1:]:
        why = "another process ended after it"
        _add(found, later, Explanation(deaths[0].index, why, rule="death"))


def _told_why(other: Incident, found: Explained) -> bool:
    """Whether an incident leads to a cause inside the log."""
    seen: set[int] = set()
    at = other.index
    while at in found and at not in seen:
        seen.add(at)
        cause = found[at].cause
        if cause is None:
            return False
        at = cause
    return True


def _after_interrupt(incidents: Sequence[Incident], found: Explained, run: Run) -> None:
    """What comes after someone stopped the engine is its way out."""
    stops = [stop.line for stop in run.interrupts if stop.kind != "shutdown"]
    if not stops:
        return
    first = min(stops)
    for one in incidents:
        if one.index not in found and one.line >= first:
            why = "printed while the engine was being stopped"
            _add(found, one, Explanation(None, why, rule="interrupt"))
