"""A second start in the same log that no line announces.

A process that dies early prints nothing but its traceback, and a log may have lost the lines before
it. Behind the shutdown of an earlier, healthy run such a traceback belongs to a new start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

from capdoctor.diagnosis.marks import counted_anew
from capdoctor.diagnosis.staging import is_of_startup
from capdoctor.logs import ExceptionNode, Run
from capdoctor.model import STAGE_ORDER, Stage

_START_FAILED = ("failed to start", "Engine core initialization failed")
_EARLY = frozenset(STAGE_ORDER[: STAGE_ORDER.index(Stage.SERVING)])


class _Placed(Protocol):
    @property
    def line(self) -> int: ...


_T = TypeVar("_T", bound=_Placed)


def split_restart(run: Run) -> tuple[Run, ...]:
    """Give the run as it is, or the run that was shut down and the start that came after it."""
    ready = run.ready
    if ready is None:
        return (run,)
    stops = [stop.line for stop in run.interrupts if stop.line > ready.line]
    begins = [mark.line for mark in run.marks if mark.line > ready.line and mark.stage in _EARLY]
    begins += [node.line for node in run.nodes if node.line > ready.line and _is_of_a_start(node)]
    begins = [begin for begin in begins if stops and begin > stops[0]]
    if not begins:
        return (run,)
    cut = max(stop for stop in stops if stop < min(begins))
    return (_part(run, run.first_line, cut), _part(run, cut + 1, run.last_line))


def _is_of_a_start(node: ExceptionNode) -> bool:
    """Whether only a start can have raised it: an import, its functions, or its own words."""
    imports = sum(frame.function == "<module>" for frame in node.frames) > 1 and node.record is None
    said = node.record.message if node.record is not None else node.message
    return imports or is_of_startup(node.frames) or any(text in said for text in _START_FAILED)


def _part(run: Run, first: int, last: int) -> Run:
    def cut(items: tuple[_T, ...]) -> tuple[_T, ...]:
        return tuple(item for item in items if first <= item.line <= last)

    return replace(
        run,
        first_line=first,
        last_line=last,
        nodes=cut(run.nodes),
        events=cut(run.events),
        deaths=cut(run.deaths),
        interrupts=cut(run.interrupts),
        marks=counted_anew(cut(run.marks)),
        bars=cut(run.bars),
        versions=cut(run.versions),
        call_sites=cut(run.call_sites),
        asserts=cut(run.asserts),
        args=cut(run.args),
        records=cut(run.records),
        lines=tuple(line for line in run.lines if first <= line.number <= last),
    )
