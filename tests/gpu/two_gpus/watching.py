"""What the visit sees of a machine from outside: GPU memory by NVML, processes by a mark."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SLACK = 64 << 20


def gpus() -> list[dict[str, Any]]:
    """Give every GPU's used bytes and processes, through nvidia-ml-py in this very process."""
    import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]

    pynvml.nvmlInit()
    try:
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            used = pynvml.nvmlDeviceGetMemoryInfo(handle).used
            found.append({"used": used, "pids": [one.pid for one in processes]})
        return found
    finally:
        pynvml.nvmlShutdown()


def used() -> list[int]:
    return [gpu["used"] for gpu in gpus()]


def wait_until(happened: Callable[[], bool], seconds: float) -> float | None:
    """Give after how many seconds it happened, None if it did not."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        if happened():
            return round(time.monotonic() - begin, 2)
        time.sleep(0.05)
    return None


def back(before: list[int]) -> bool:
    return all(now <= was + SLACK for now, was in zip(used(), before, strict=True))


def marked(mark: str) -> list[dict[str, Any]]:
    """Give the living processes with the mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark.encode() in variables and state not in "ZX":
            found.append({"pid": int(entry.name), "state": state, "title": title[:120]})
    return found


@contextmanager
def memory_held(env: Mapping[str, str]) -> Iterator[str]:
    """Have another process hold nearly all memory of the first visible GPU."""
    holder = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("hold_memory.py"))],
        cwd=ROOT,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        yield holder.stdout.readline().strip() or "the holder said nothing"
    finally:
        holder.communicate(timeout=20)
