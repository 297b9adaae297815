"""Run a child process with its output in a file; when this returns, its whole group is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from capdoctor.bisection.history.gitcall import git_environment
from capdoctor.bisection.probes.probe import Place
from capdoctor.errors import CannotDo

SIGNALLED = 128  # a shell's exit code for signal N is 128 + N
GRACE = 10.0  # seconds between asking a process group to end and ending it


def run_logged(
    command: str | Sequence[str],
    log: Path,
    place: Place,
    *,
    folder: Path | None = None,
    timeout: float | None = None,
) -> int | None:
    """Return the exit code as a shell gives it, None where it timed out.

    A string is the user's own command line and goes through the shell.

    Raises:
        CannotDo: the log cannot be written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = log.open("wb")
    except OSError as error:
        raise CannotDo(f"{log} cannot be written: {error.strerror}", "free disk space") from error
    with file:
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=folder,
            env=_environment(place),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end_group(process)
    return SIGNALLED - code if code < 0 else code


def _environment(place: Place) -> dict[str, str]:
    environment = git_environment() | {"CAPDOCTOR_SHA": place.sha, "PYTHONUNBUFFERED": "1"}
    if place.devices is not None:
        environment |= dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), place.devices)
    return environment


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
