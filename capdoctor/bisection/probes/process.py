"""Run a child process with its output in a file; when this returns, all it started is gone."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from capdoctor.bisection.history.gitcall import outside_git
from capdoctor.bisection.journal.disk import writing
from capdoctor.bisection.probes.probe import Cancelled, Place, visible_devices
from capdoctor.bisection.probes.strays import end_strays, mark

SIGNALLED = 128  # a shell's exit code for signal N is 128 + N
GLANCE = 0.5  # seconds between two looks at whether the run was cancelled
GRACE = 10.0  # seconds between asking a process group to end and ending it


def run_logged(
    command: str | Sequence[str],
    log: Path,
    place: Place,
    *,
    folder: Path | None = None,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> int | None:
    """Return the exit code as a shell gives it, None where it timed out.

    ``env`` is added to the environment. A string is the user's own command line and goes through
    the shell.

    Raises:
        CannotDo: the log cannot be written.
        Cancelled: its verdict is of no use any more.
    """
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("wb")
    with file:
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=folder,
            env={**_environment(place), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _wait(process, place, timeout)
        finally:
            _end_group(process)
            end_strays(place.out)
    return SIGNALLED - code if code is not None and code < 0 else code


def _wait(process: subprocess.Popen[bytes], place: Place, timeout: float | None) -> int | None:
    deadline = time.monotonic() + (timeout or math.inf)
    while True:
        try:
            return process.wait(min(GLANCE, max(0.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            if place.cancelled.is_set():
                raise Cancelled from None
            if time.monotonic() >= deadline:
                return None


def _environment(place: Place) -> dict[str, str]:
    given = {"CAPDOCTOR_SHA": place.sha, "PYTHONUNBUFFERED": "1"}
    return outside_git() | given | mark(place.out) | visible_devices(place)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the command has left running."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + GRACE
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    process.wait()
