"""Ask something of a driver, in a child process that may never come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# A child that SIGKILL does not end sits in the driver: nobody waits for it longer than this.
_KILL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why a child had no answer; ``stuck``: it had to be killed, ``immortal``: in vain."""

    why: str
    stuck: bool = False
    immortal: bool = False


def ask(
    command: Sequence[str], env: Mapping[str, str], seconds: float, keys: Iterable[str]
) -> dict[str, Any] | NoAnswer:
    """Run a command that prints a JSON object in a line, and give that, or why there is none.

    It is known by one of ``keys``. Other lines are somebody else's: of a driver told to log to
    stdout, of a preloaded library.
    """
    try:
        child = subprocess.Popen(
            command,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as exc:
        return NoAnswer(f"{command[0]} cannot be started: {exc.strerror}")
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return _give_up(child, seconds)
    except BaseException:
        _give_up(child, seconds)
        raise
    told = _last_object(out, frozenset(keys))
    return _no_answer(err, child.returncode) if told is None else told


def _give_up(child: subprocess.Popen[bytes], seconds: float) -> NoAnswer:
    with suppress(ProcessLookupError):  # it ended just now
        os.killpg(child.pid, signal.SIGKILL)
    try:
        child.communicate(timeout=_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
        return NoAnswer(
            f"no answer within {seconds:g} s, and process {child.pid} is stuck in the driver",
            stuck=True,
            immortal=True,
        )
    return NoAnswer(f"no answer within {seconds:g} s", stuck=True)


def _no_answer(err: bytes, code: int) -> NoAnswer:
    if code == 0:
        return NoAnswer("its answer cannot be read")
    last = err.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
    ended = f"signal {-code}" if code < 0 else f"exit {code}"
    return NoAnswer(f"it ended with {ended}" + (f": {last}" if last else ""))


def _last_object(out: bytes, keys: frozenset[str]) -> dict[str, Any] | None:
    for line in reversed(out.splitlines()):
        with suppress(ValueError):
            told = json.loads(line)
            if isinstance(told, dict) and keys & told.keys():
                return told
    return None
