"""Which call of which thread the driver refused, by its own log: it names what no hook saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capdoctor.capture.driver_log import read_calls
from capdoctor.model.traces import Offence, OffenceKind, TracedCall

_MOST_LINES = 4
_MOST_ERRORS = 1_000
_CAPTURE_CODES = range(900, 909)
_INVALIDATED = 901  # says only that something else had happened before
_INVALID_VALUE = 1  # what the use of a dead capture's event is refused with
_INVALIDATED_BY = frozenset(
    {OffenceKind.INVALIDATED, OffenceKind.OTHER_THREAD, OffenceKind.UNSEEN, OffenceKind.AT_END}
)


@dataclass(frozen=True, slots=True)
class DriverError:
    """A call that the driver refused, with the lines that tell of it."""

    thread_id: int
    code: int
    api: str
    lines: tuple[str, ...]


def read_driver_log(path: Path | None) -> tuple[DriverError, ...]:
    """The refused calls in their order, each kind of call of each thread once; none without a log.

    Only the first of a kind can be the one that broke something.
    """
    found: dict[tuple[int, int, str], DriverError] = {}
    for call in read_calls(path):
        if call.api and call.thread.isascii() and call.thread.isdigit():
            thread = int(call.thread)
            error = DriverError(thread, call.code, call.api, call.lines[-_MOST_LINES:])
            found.setdefault((thread, call.code, call.api), error)
    return tuple(found.values())[:_MOST_ERRORS]


def attribute(
    offence: Offence,
    line: Mapping[str, Any],
    driver: Sequence[DriverError],
    foreign: AbstractSet[int] = frozenset(),
) -> Offence:
    """Add what the driver said; where no hook saw the call, its word names API and thread.

    ``foreign`` are threads of other processes, which may share the log.
    """
    names = threads_of(line)
    told = [error for error in driver if error.thread_id in names or error.thread_id not in foreign]
    if offence.kind is OffenceKind.EVENT_OUTSIDE:
        own = next((e for e in told if _is_use_of_event(e, offence)), None)
        return replace(offence, driver=own.lines) if own else offence
    first = next((error for error in told if _breaks_capture(error)), None)
    if first is None or offence.kind not in _INVALIDATED_BY:
        return offence
    own = next((e for e in told if e.thread_id == offence.call.thread_id), None)
    if offence.kind is OffenceKind.UNSEEN or _was_another(offence, own, first):
        return _named_by_driver(offence, first, names)
    return replace(offence, driver=(own or first).lines)


def _was_another(offence: Offence, own: DriverError | None, first: DriverError) -> bool:
    """An operation was blamed while another thread's call came in between."""
    innocent = own is None or own.code == _INVALIDATED
    blamed = offence.kind is OffenceKind.INVALIDATED
    return blamed and innocent and first.thread_id != offence.call.thread_id


def _breaks_capture(error: DriverError) -> bool:
    return error.code in _CAPTURE_CODES and error.code != _INVALIDATED


def _is_use_of_event(error: DriverError, offence: Offence) -> bool:
    return error.thread_id == offence.call.thread_id and error.code == _INVALID_VALUE


def _named_by_driver(
    offence: Offence, error: DriverError, names: Mapping[int, str | None]
) -> Offence:
    """The call that no hook saw, by the driver's name and thread."""
    if error.thread_id == offence.call.thread_id:
        call = replace(offence.call, operation=error.api)
        return replace(offence, call=call, driver=error.lines)
    call = TracedCall(
        operation=error.api,
        capture=offence.call.capture,
        number=offence.call.number,
        stream=offence.call.stream,
        thread=names.get(error.thread_id),
        thread_id=error.thread_id,
    )
    return replace(offence, kind=OffenceKind.OTHER_THREAD, call=call, driver=error.lines)


def threads_of(line: Mapping[str, Any]) -> dict[int, str | None]:
    """The threads that were known when the offence was noticed, by id."""
    threads = line.get("threads")
    if not isinstance(threads, dict):
        return {}
    return {
        int(ident): name if isinstance(name, str) else None
        for ident, name in threads.items()
        if str(ident).isascii() and str(ident).isdigit()
    }
