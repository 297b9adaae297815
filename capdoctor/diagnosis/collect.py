"""From what the log room found in one run to incidents and clues."""

from __future__ import annotations

import re
from dataclasses import dataclass

from capdoctor.diagnosis.driver_errors import decode
from capdoctor.diagnosis.incident import Clue, Incident, Kind
from capdoctor.diagnosis.roles import role_of
from capdoctor.diagnosis.tables import table
from capdoctor.logs import (
    Death,
    ExceptionNode,
    Line,
    LinkKind,
    NativeEvent,
    Origin,
    Run,
    StackFrame,
    package_path,
)

_HEAD = "Traceback (most recent call last)"
_NATIVE_PLACE = r"\b(?:CUDA|HIP|Cuda) [Ee]rror \(([\w./+-]+\.(?:cuh?|cpp|cc|hip|hpp|h|inl)):(\d+)\)"


@dataclass(frozen=True, slots=True)
class Collected:
    """The incidents of one run in file order, and the clues beside them."""

    incidents: tuple[Incident, ...]
    clues: tuple[Clue, ...]


def collect(run: Run, *, promote: bool = False) -> Collected:
    """Gather every failure of a run once: copies of an exception are left out.

    With ``promote`` those clues that can be a failure of their own count as one.
    """
    rows: list[tuple[int, object]] = [(node.line, node) for node in run.nodes]
    clue_kinds = frozenset(table("native_kinds")["clues"])
    if promote:
        clue_kinds -= frozenset(table("native_kinds")["promoted"])
    clues = []
    for event in run.events:
        if _says_nothing(event):
            continue
        if event.kind in clue_kinds:
            clues.append(_clue(event))
        else:
            rows.append((event.line, event))
    rows += [(death.line, death) for death in run.deaths]
    rows.sort(key=lambda row: row[0])
    return Collected(tuple(_incidents([row for _, row in rows])), tuple(clues))


def _says_nothing(event: NativeEvent) -> bool:
    """Whether a line only lists what may have happened to a process, or tells of no failure."""
    kinds, lowered = table("native_kinds"), event.text.lower()
    return any(mark in lowered for mark in (*kinds["advice_marks"], *kinds["harmless_marks"]))


def collect_stray(run: Run, total_lines: int) -> Collected:
    """Lines that carry an error in no form that is known: a last resort.

    In a short excerpt every line may be one; in a log only those with a GPU error's text.
    """
    signs = tuple(table("native_kinds")["stray_signs"])
    harmless = tuple(table("native_kinds")["harmless_marks"])
    short = total_lines <= int(table("native_kinds")["excerpt_lines"])
    found = [
        line
        for line in run.lines
        if line.text.strip() and line.level not in {"INFO", "WARNING", "DEBUG"}
        if not any(mark in line.text for mark in harmless)
        if short or (any(sign in line.text for sign in signs) and decode(line.text) is not None)
    ]
    return Collected(tuple(_of_line(i, line) for i, line in enumerate(found)), ())


def _of_line(index: int, line: Line) -> Incident:
    return Incident(
        index=index,
        kind="native",
        type=None,
        message=line.text.strip(),
        stream=line.stream,
        role=line.stream.role,
        line=line.number,
        error_line=line.number,
        last_line=line.number,
        native_frames=_place_in(line.text),
        driver=decode(line.text),
        bare=True,
    )


def _place_in(text: str) -> tuple[StackFrame, ...]:
    """The C++ source line that a message names, such as ``CUDA error (csrc/a.cuh:61): …``."""
    found = re.search(_NATIVE_PLACE, text)
    if found is None:
        return ()
    file, number = found.groups()
    return (StackFrame(file, int(number), None, "", package_path(file)),)


def _incidents(rows: list[object]) -> list[Incident]:
    kept = [r for r in rows if not (isinstance(r, ExceptionNode) and _is_copy(r))]
    index_of = {r.index: i for i, r in enumerate(kept) if isinstance(r, ExceptionNode)}
    for row in rows:
        if isinstance(row, ExceptionNode) and row.index not in index_of:
            original = index_of.get(row.copy_of) if row.copy_of is not None else None
            if original is not None:
                index_of[row.index] = original
    return [_incident(i, row, index_of) for i, row in enumerate(kept)]


def _is_copy(node: ExceptionNode) -> bool:
    return node.copy_of is not None


def _incident(index: int, row: object, index_of: dict[int, int]) -> Incident:
    if isinstance(row, ExceptionNode):
        return _of_node(index, row, index_of)
    if isinstance(row, NativeEvent):
        return _of_event(index, row)
    assert isinstance(row, Death)  # noqa: S101 - the only kind left
    return _of_death(index, row)


def _of_node(index: int, node: ExceptionNode, index_of: dict[int, int]) -> Incident:
    def other(*kinds: LinkKind) -> int | None:
        for kind in kinds:
            to = node.linked(kind)
            if to is not None and index_of.get(to) not in {None, index}:
                return index_of[to]
        return None

    kind: Kind = "native" if node.origin in {Origin.CPP, Origin.HANDLER} else "python"
    return Incident(
        index=index,
        kind=kind,
        type=node.type,
        message=node.message if node.type else node.message or _said_before(node),
        stream=node.stream,
        role=role_of(node),
        line=node.line,
        error_line=node.error_line or node.last_line,
        last_line=node.last_line,
        frames=node.frames,
        native_frames=node.native_frames,
        headline=node.record.message.split("\n", 1)[0] if node.record else "",
        level=node.record.level if node.record else None,
        driver=decode(node.message if node.type else _said_before(node)),
        raised_from=other(LinkKind.CONTEXT, LinkKind.CAUSE),
        quoted_in=other(LinkKind.EMBEDDED),
        member_of=other(LinkKind.MEMBER),
        bare=node.origin is Origin.BARE,
        truncated_head=node.truncated_head,
        cut_off=node.type is None,
        uncaught=node.process_name is not None,
        ignored=node.preface.startswith(tuple(table("native_kinds")["ignored_prefaces"])),
    )


def _said_before(node: ExceptionNode) -> str:
    """What the record of a traceback that breaks off says above it: often the error itself."""
    return node.record.message.partition(_HEAD)[0].strip() if node.record is not None else ""


def _of_event(index: int, event: NativeEvent) -> Incident:
    return Incident(
        index=index,
        kind="native",
        type=table("native_kinds")["types"].get(event.kind),
        message=event.text,
        stream=event.stream,
        role=event.stream.role,
        line=event.line,
        error_line=event.line,
        last_line=event.line,
        driver=decode(event.text) or decode(event.message),
        event=event,
    )


def _of_death(index: int, death: Death) -> Incident:
    return Incident(
        index=index,
        kind="death",
        type=death.signal,
        message=death.text,
        stream=death.stream,
        role=death.stream.role,
        line=death.line,
        error_line=death.line,
        last_line=death.line,
        death=death,
    )


def _clue(event: NativeEvent) -> Clue:
    driver = decode(event.text) or decode(event.message)
    return Clue(event.line, event.text, event.stream, driver, event)
