"""Which record a line belongs to: vLLM repeats the header, SGLang writes it once."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.logs.drafts import RecordDraft, open_record, unnamed
from capdoctor.logs.limits import Limits
from capdoctor.logs.peel import Peeled
from capdoctor.logs.values import Record, StreamId

_HEAD = "Traceback (most recent call last)"
_TROUBLE = ("xception", "rror", "fail", "Fail", _HEAD)
_HEADED = 2  # lines: a heading and the traceback under it
_KEPT_LEVELS = ("ERROR", "CRITICAL")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line belongs: whose it is, its record (None: raw), whether that begins here."""

    stream: StreamId
    record: RecordDraft | None
    boundary: bool


class RecordTracker:
    """Follows the open record of every stream and keeps those that matter."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[StreamId, RecordDraft | None] = {}
        self._carry: RecordDraft | None = None
        self._carry_at = 0
        self._kept: list[RecordDraft] = []
        self.dropped = 0

    def place(self, line: Peeled) -> Place:
        """Give the place of a line; lines come in file order."""
        if line.header is not None:
            return self._with_header(line)
        if not line.prefixed and self._carried(line):
            record = self._carry
            assert record is not None  # noqa: S101 - _carried has looked
            self._carry_at = line.number
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
        self._carry = record if _carries(record, line) else None
        self._carry_at = line.number
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

    def _carried(self, line: Peeled) -> bool:
        """SGLang and plain loggers write the header of a record only once."""
        if self._carry is None:
            return False
        near = line.number - self._carry_at <= 1 or self._carry.has_traceback
        return near and (unnamed(line.stream) or line.stream == self._carry.stream)


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
