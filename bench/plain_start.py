"""What a user does without capdoctor: start vLLM and wait until it is ready; timed by its lines."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from capdoctor.engines.clock import StageClock
from capdoctor.engines.listener import Quiet

IMPORTED, READY = "bench: imported", "bench: ready"
START = f"""
import json, sys
if __name__ == "__main__":
    from vllm import LLM
    print({IMPORTED!r}, flush=True)
    LLM(**json.loads(sys.argv[1]))
    print({READY!r}, flush=True)
    sys.stdin.read()
"""
_END_SECONDS = 30


def wait_until_ready(
    command: list[str], environment: dict[str, str], log: Path, timeout: float
) -> dict[str, Any]:
    """Give the seconds until it was ready and those of each stage; everything it started is ended.

    Where it does not become ready, ``failed`` says why and ``log`` holds what it printed.
    """
    begin = time.monotonic()
    clock, ready = StageClock(Quiet()), None
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        ) as child,
    ):
        try:
            for line in _lines(child, begin + timeout):
                now = time.monotonic() - begin
                file.write(line + "\n")
                clock.line(line, now)
                if IMPORTED in line:
                    clock.imported(now)
                if READY in line:
                    ready = now
                    break
        finally:
            _end(child)
    if ready is None:
        return {"failed": f"not ready within {timeout:.0f} s, or ended: see {log.name}"}
    stages: dict[str, float] = {}
    for span in clock.spans(ready):
        end = ready if span.end is None else span.end
        stages[span.name] = round(stages.get(span.name, 0.0) + end - span.start, 2)
    return {"outcome": "ready", "seconds": round(ready, 2), "stages": stages}


def _lines(child: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """Give lines until the end or the deadline, the states of a progress bar as lines."""
    assert child.stdout is not None
    held = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([child.stdout], [], [], left)[0]:
            return
        data = os.read(child.stdout.fileno(), 1 << 16)
        if not data:
            return
        *whole, held = (held + data).replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the whole process group; wait until the group is gone, and its memory with it."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
