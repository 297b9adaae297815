"""Lines that are JSON objects: Docker's json-file, journald's export, vLLM's JSON formatter."""

from __future__ import annotations

import json
from typing import NamedTuple

from capdoctor.logs.prefixes import Header, rank_in_name
from capdoctor.logs.values import UNNAMED, Level, StreamId

_TEXT_KEYS = ("log", "MESSAGE", "message", "msg", "line", "text", "textPayload")
_LEVEL_KEYS = ("levelname", "level", "severity")
_PLAIN = frozenset({"log", "MESSAGE", "line", "text", "textPayload"})
# A shipper adds a level to every line, a formatter says more about its record.
_RECORD = {"levelname", "processName", "process", "exc_info", "exception", "lineno", "asctime"}
_AFTER = frozenset({"", ",", "]"})  # of a list of such objects
_DECODER = json.JSONDecoder()
_BYTE = range(256)
_FILE_KEYS = ("filename", "file")
_LEVELS: dict[str, Level] = {
    "DEBUG": "DEBUG", "INFO": "INFO", "WARNING": "WARNING", "WARN": "WARNING",
    "ERROR": "ERROR", "CRITICAL": "CRITICAL", "FATAL": "CRITICAL",
}  # fmt: skip


class JsonLine(NamedTuple):
    """What a JSON line holds: a wrapped text line, or (``header``) a record of its own."""

    text: str
    layer: str
    partial: bool = False
    newline: bool = False
    header: Header | None = None
    stream: StreamId = UNNAMED


def read_json_line(text: str) -> JsonLine | None:
    """Give what a JSON object in one line carries; None if it is none, or holds no text."""
    if text[:1] != "{" or '"' not in text[:80]:
        return None
    try:
        entry, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or text[end:].strip() not in _AFTER:
        return None
    if isinstance(entry.get("jsonPayload"), dict):
        entry = entry["jsonPayload"]
    key = next((key for key in _TEXT_KEYS if isinstance(entry.get(key), str | list)), None)
    key = key or next((key for key, value in entry.items() if _holds_traceback(value)), None)
    if key is None:
        return None
    body = _body(entry[key])
    if key in _PLAIN or not (_level(entry) and (_RECORD & entry.keys() or "\n" in body)):
        newline = body.endswith("\n")
        partial = key == "log" and not newline
        return JsonLine(body.removesuffix("\n"), _layer(key), partial, newline)
    return _record(entry, body)


def _holds_traceback(value: object) -> bool:
    return isinstance(value, str) and "Traceback (most recent call last)" in value


def _record(entry: dict[str, object], body: str) -> JsonLine:
    trace = next(
        (
            entry[k]
            for k in ("exc_info", "exception", "stack_info")
            if isinstance(entry.get(k), str)
        ),
        None,
    )
    text = f"{body}\n{trace}" if trace else body
    file = next((entry[k] for k in _FILE_KEYS if isinstance(entry.get(k), str)), None)
    when = entry.get("asctime", entry.get("timestamp"))
    header = Header(
        "json",
        _level(entry),
        when if isinstance(when, str) else None,
        str(file) if file is not None else None,
        _int(entry.get("lineno")),
    )
    name, pid = entry.get("processName"), _int(entry.get("process", entry.get("pid")))
    stream = StreamId(name, pid, rank_in_name(name)) if isinstance(name, str) else StreamId(pid=pid)
    return JsonLine(text, "json", header=header, stream=stream)


def _body(value: object) -> str:
    """Journald exports a message that is no UTF-8 as a list of byte values."""
    if isinstance(value, list):
        return bytes(b for b in value if isinstance(b, int) and b in _BYTE).decode(
            "utf-8", "replace"
        )
    return str(value)


def _level(entry: dict[str, object]) -> Level | None:
    for key in _LEVEL_KEYS:
        value = entry.get(key)
        if isinstance(value, str) and value.upper() in _LEVELS:
            return _LEVELS[value.upper()]
    return None


def _layer(key: str) -> str:
    return {"log": "docker-json", "MESSAGE": "journald-json"}.get(key, "json-text")


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
