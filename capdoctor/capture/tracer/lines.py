"""The parts of a journal's line as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capdoctor.capture.tracer.paths import shown_path
from capdoctor.model.diagnosis import ErrorInfo, Frame
from capdoctor.model.traces import OffenceKind, TracedCall


def offence_kind(line: Mapping[str, Any]) -> OffenceKind:
    """How it was broken; a suspect that nothing resolved raised."""
    try:
        return OffenceKind(str(line.get("how", OffenceKind.RAISED)))
    except ValueError:
        return OffenceKind.AT_END


def call_of(value: Any) -> TracedCall:
    """A call; fields that are missing or of another type stay empty."""
    fields = value if isinstance(value, dict) else {}
    stack = fields.get("stack")
    return TracedCall(
        operation=_text(fields.get("operation")) or "unknown",
        stack=tuple(_frame(row) for row in stack) if isinstance(stack, list) else (),
        source=_text(fields.get("source")) or "",
        called_as=_text(fields.get("called_as")),
        stream=_number(fields.get("stream")),
        capture=_number(fields.get("capture")),
        number=_number(fields.get("number")),
        thread=_text(fields.get("thread")),
        thread_id=_number(fields.get("thread_id")) or None,
    )


def error_of(value: Any) -> ErrorInfo | None:
    """An exception: its type, the driver's code, the first line of its message."""
    if not isinstance(value, dict):
        return None
    message = _text(value.get("message")) or ""
    return ErrorInfo(
        type=_text(value.get("type")),
        message=message.partition("\n")[0],
        code=_number(value.get("code")),
    )


def _frame(row: Any) -> Frame:
    parts = list(row) if isinstance(row, list) else []
    file, line, function = (*parts, None, None, None)[:3]
    return Frame(shown_path(_text(file) or ""), _number(line), _text(function))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
