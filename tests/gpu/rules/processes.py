"""Runs rows in forked processes, several at once, and outlives each of them.

The parent imports torch and never touches CUDA; every child starts from there. A child may run
several rows; by default it is left as soon as one of them was not clean, so that a broken capture
never spoils the next row. A row that kills its child, or takes too long, is a result too.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
ROW_LIMIT = 45  # seconds for one row
_MOURNING = 15  # seconds after the deadline until a process that does not die is left behind


@dataclass
class Child:
    """A running process, the rows it was given, and what it has written so far."""

    pid: int
    rows: deque[Row]
    started: float
    stays: Callable[[Row], bool]
    text: bytearray = field(default_factory=bytearray)
    done: int = 0
    leaves: bool = False
    late: bool = False


def clean(answer: Row) -> bool:
    """Say whether a process is as good as fresh after this answer."""
    legal = all(answer.get(k) is None for k in ("error", "thread_error", "end_error"))
    unspoiled = answer.get("after_error") is None and "before_error" not in answer
    return legal and unspoiled and answer.get("capture_after") == "active" and "died" not in answer


def run_all(
    batches: Iterable[Sequence[Row]],
    work: Callable[[Row], Row],
    *,
    processes: int,
    deadline: float,
    stays: Callable[[Row], bool] = clean,
) -> Iterator[Row]:
    """Yield every row with its answer, in whatever order they come.

    ``work`` runs in the child, which goes on to its next row while ``stays`` says so of the last
    answer. ``alone``: the row was the first of its process. Rows that did not run before
    ``deadline`` (time.monotonic) come back with ``not_measured``.
    """
    waiting = deque(deque(batch) for batch in batches if batch)
    with selectors.DefaultSelector() as selector:
        running: dict[int, Child] = {}
        while waiting or running:
            late = time.monotonic() > deadline
            while waiting and len(running) < processes and not late:
                _start(waiting.popleft(), work, stays, selector, running)
            if late:
                yield from (row | {"not_measured": True} for rows in waiting for row in rows)
                waiting.clear()
                for child in running.values():
                    child.late = True
                    _kill(child)
            if time.monotonic() > deadline + _MOURNING:
                yield from (
                    row | {"not_measured": True} for c in running.values() for row in c.rows
                )
                return
            for key, _events in selector.select(timeout=1.0):
                yield from _read(key.fd, running[key.fd], selector, running, waiting)
            for child in running.values():
                if time.monotonic() - child.started > ROW_LIMIT:
                    _kill(child)


def _start(
    rows: deque[Row],
    work: Callable[[Row], Row],
    stays: Callable[[Row], bool],
    selector: selectors.BaseSelector,
    running: dict[int, Child],
) -> None:
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_a_child(rows, work, stays, writing)
    os.close(writing)
    running[reading] = Child(pid, rows, time.monotonic(), stays)
    selector.register(reading, selectors.EVENT_READ)


def _be_a_child(
    rows: deque[Row], work: Callable[[Row], Row], stays: Callable[[Row], bool], writing: int
) -> None:
    """Write one JSON line a row. The process ends without clean-up, which may crash."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    signal.alarm(ROW_LIMIT * len(rows))
    for index, row in enumerate(rows):
        try:
            answer = work(row)
        except BaseException as error:  # noqa: BLE001 - the harness's own fault is a row as well
            answer = {"harness_error": f"{type(error).__name__}: {error}"[:600]}
        line = json.dumps(answer | {"alone": index == 0}).encode() + b"\n"
        while line:
            line = line[os.write(writing, line) :]
        if not stays(answer):
            break
    os._exit(0)


def _read(
    fd: int,
    child: Child,
    selector: selectors.BaseSelector,
    running: dict[int, Child],
    waiting: deque[deque[Row]],
) -> Iterator[Row]:
    chunk = os.read(fd, 1 << 16)
    child.text += chunk
    while (end := child.text.find(b"\n")) >= 0:
        answer = json.loads(bytes(child.text[:end]))
        del child.text[: end + 1]
        child.started = time.monotonic()
        child.done += 1
        child.leaves = not child.stays(answer)
        yield child.rows.popleft() | answer
    if chunk:
        return
    selector.unregister(fd)
    os.close(fd)
    del running[fd]
    status = os.waitpid(child.pid, 0)[1]
    if child.rows and not child.leaves:
        died = {"not_measured": True} if child.late else {"died": os.waitstatus_to_exitcode(status)}
        yield child.rows.popleft() | died | {"alone": child.done == 0}
    if child.rows:
        waiting.append(child.rows)


def _kill(child: Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
