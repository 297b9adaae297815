"""The lines of a traced process's file, which may come from a stranger: bounded and well typed.

Whatever the file holds, a line has only fields of the types that the tracer writes; a field of
another type, or null, is left out, a line that is no JSON object is passed over.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_MOST_FILES = 1_000
_MOST_BYTES = 16 << 20  # of one file; a process writes some hundred bytes for each capture
_MOST_BYTES_OF_ALL = 64 << 20
_LONGEST_LINE = 1 << 20
_MOST_LINES = 100_000

Line = Mapping[str, Any]


def trace_files(folder: Path) -> list[Path]:
    """Give the files of the traced processes in the order of their names."""
    try:
        found = sorted(path for path in folder.glob("trace-*.jsonl") if path.is_file())
    except (OSError, ValueError):  # no permission; a NUL in the name
        return []
    return _first_bytes(found[:_MOST_FILES])


def _first_bytes(files: list[Path]) -> list[Path]:
    """Leave out the files that are beyond what is read of all together."""
    kept, left = [], _MOST_BYTES_OF_ALL
    for path in files:
        try:
            left -= min(path.stat().st_size, _MOST_BYTES)
        except OSError:  # gone, or no permission
            continue
        if left >= 0:
            kept.append(path)
    return kept


def safe_lines(path: Path) -> Iterator[Line]:
    """Give the lines of a file that are whole; a process may have died while it wrote its last."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return
    for raw in data.split(b"\n")[:_MOST_LINES]:
        value = _parsed(raw) if len(raw) <= _LONGEST_LINE else None
        if isinstance(value, dict):
            yield _typed(value)


def _parsed(raw: bytes) -> Any:
    try:
        return _encodable(json.loads(raw.decode("utf-8", "replace")))
    except (ValueError, RecursionError):  # no JSON, a number without end, brackets without end
        return None


def _encodable(value: Any) -> Any:
    """Take out of all texts what JSON can spell and no encoding can write: half characters."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


def _typed(value: Mapping[str, Any]) -> Line:
    return {key: field for key, field in value.items() if key not in _TYPES or _TYPES[key](field)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 64


def _is_seconds(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value) and abs(value) < 1 << 53


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_raised(value: Any) -> bool:
    """A call and its error, each an object where it is there."""
    return isinstance(value, dict) and all(
        isinstance(value.get(part), dict | None) for part in ("call", "error")
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "kind": _is_text,
    "how": _is_text,
    "text": _is_text,
    "process": _is_text,
    "pid": _is_number,
    "number": _is_number,
    "count": _is_number,
    "time": _is_seconds,
    "call": _is_object,
    "earlier": _is_object,
    "error": _is_object,
    "raised": _is_raised,
    "threads": _is_object,
}
