"""Which record a line belongs to: vLLM repeats the header, SGLang writes it once."""

from __future__ import annotations

from typing import NamedTuple

from capdoctor.logs.drafts import RecordDraft, open_record, unnamed
from capdoctor.logs.limits import Limits
from capdoctor.logs.peel import Peeled
from capdoctor.logs.values import Record, StreamId

_HEAD = "Traceback (most recent call last)"
_TROUBLE = ("xception", "rror", "fail", "Fail", _HEAD)
_HEADED = 2  # lines: a heading and the traceback under it
_CARRIED = 4_096  # records that may go on at once
_KEPT_LEVELS = ("ERROR", "CRITICAL")


class Place(NamedTuple):
    """Where a line belongs: whose it is, its record (None: raw), whether that begins here."""

    stream: StreamId
    record: RecordDraft | None
    boundary: bool


class RecordTracker:
    """Follows the open record of every stream and keeps those that matter."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[StreamId, RecordDraft | None] = {}
        self._carries: dict[StreamId, RecordDraft] = {}
        self._carried_at: dict[StreamId, int] = {}
        self._kept: list[RecordDraft] = []
        self.dropped = 0

    def place(self, line: Peeled) -> Place:
        """Give the place of a line; lines come in file order."""
        if line.header is not None:
            return self._with_header(line)
        record = self._carried(line)
        if record is not None:
            self._carried_at[line.outer] = line.number
            record.add(line, self._limits)
            return Place(record.stream, record, boundary=False)
        was_open = self._open.get(line.stream) is not None
        if was_open:
            self._open[line.stream] = None
        return Place(line.stream, None, was_open)

    def begin_of(self, line: Peeled) -> int:
        """Give the first line of the record that a line with a header goes on with."""
        record = self._open.get(line.stream)
        near = record is not None and record.last_line == line.number - 1
        return (
            record.line if record is not None and near and record.continues(line) else line.number
        )

    def freeze(self) -> tuple[Record, ...]:
        """Give the records of level ERROR and CRITICAL, and any that holds a traceback."""
        wanted = [r for r in self._kept if r.level in _KEPT_LEVELS or r.has_traceback]
        self.dropped += max(0, len(wanted) - self._limits.records)
        return tuple(record.freeze() for record in wanted[: self._limits.records])

    def _with_header(self, line: Peeled) -> Place:
        record = self._open.get(line.stream)
        if record is not None and record.continues(line) and not _begins_again(record, line):
            record.add(line, self._limits)
            return Place(line.stream, record, boundary=False)
        record = open_record(line)
        record.add(line, self._limits)
        self._open[line.stream] = record
        self._carries.pop(StreamId(ip=line.outer.ip), None)
        self._carries.pop(line.outer, None)
        if _carries(record, line) and len(self._carries) < _CARRIED:
            self._carries[line.outer] = record
            self._carried_at[line.outer] = line.number
        if record.level in _KEPT_LEVELS or record.level in (None, "WARNING"):
            self._keep(record)
        return Place(line.stream, record, boundary=True)

    def _keep(self, record: RecordDraft) -> None:
        if len(self._kept) >= 2 * self._limits.records:
            before = len(self._kept)
            self._kept = [r for r in self._kept if r.level in _KEPT_LEVELS or r.has_traceback][
                : self._limits.records
            ]
            self.dropped += before - len(self._kept)
        self._kept.append(record)

    def _carried(self, line: Peeled) -> RecordDraft | None:
        """SGLang and plain loggers write the header of a record only once; a prefix stays."""
        record = self._carries.get(line.outer)
        if record is None or record.has_traceback or not unnamed(line.outer):
            return record
        return record if line.number - self._carried_at[line.outer] <= 1 else None


def _begins_again(record: RecordDraft, line: Peeled) -> bool:
    """Two records of one call site in one second look like one; the first line tells."""
    if record.style == "json" or len(record.parts) < _HEADED:
        return False
    heading, second = record.parts[:_HEADED]
    return second.startswith(_HEAD) and line.text == heading


def _carries(record: RecordDraft, line: Peeled) -> bool:
    if record.style == "sglang":
        return any(word in line.text for word in _TROUBLE)
    return record.style == "plain" and record.level in ("WARNING", *_KEPT_LEVELS)
