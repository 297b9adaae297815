"""The memory of a run's GPUs before and after it, as the driver tells it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from capdoctor.engines.gpus import read_memory
from capdoctor.engines.gpus.asking import NoAnswer, ask
from capdoctor.model import GpuHolder, GpuMemory, GpuMemoryFacts

# There where NVIDIA's kernel driver is loaded; on WSL it is another node.
DRIVER_NODES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
_NODES_OF_GPUS = Path("/dev")
NO_DRIVER = "this machine has no NVIDIA driver"
READ_SECONDS = 20.0
# A process that ended gives its memory back within a second or two; a large one takes longer.
SETTLE_SECONDS = 10.0
# What the driver itself keeps for a GPU varies a little from run to run.
SLACK = 64 << 20


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU at one moment; bytes. ``processes`` maps a process to its memory, where told."""

    index: int
    uuid: str
    name: str
    total: int
    used: int
    processes: Mapping[int, int | None]


def has_driver() -> bool:
    """Whether NVIDIA's kernel driver is loaded here."""
    return any(node.exists() for node in DRIVER_NODES)


def count_gpus() -> int:
    """Give for how many GPUs the kernel driver has a device node here; on WSL there are none."""
    return sum(1 for node in _NODES_OF_GPUS.glob("nvidia[0-9]*"))


def read_gpus(
    env: Mapping[str, str], before: Sequence[GpuReading] = (), seconds: float = 0.0
) -> tuple[GpuReading, ...] | str:
    """Give every GPU that a process with the variables ``env`` sees, or why that is not known.

    With ``before`` the reading is taken as soon as no GPU uses more than then, or only because of
    living processes that have come since; and after ``seconds`` at the latest.
    """
    if not has_driver():
        return NO_DRIVER
    until = {gpu.uuid: (gpu.used + SLACK, list(gpu.processes)) for gpu in before}
    order = json.dumps({"until": until, "seconds": seconds})
    command = [sys.executable, "-P", read_memory.__file__, order]
    told = ask(command, os.environ, READ_SECONDS + seconds, ("gpus", "absent"))
    if isinstance(told, NoAnswer):
        return f"the question for the GPUs' memory failed: {told.why}"
    if "gpus" not in told:
        return str(told.get("absent"))
    errors = {gpu["index"]: gpu["error"] for gpu in told["gpus"] if "error" in gpu}
    gpus = _seen([_reading(gpu) for gpu in told["gpus"]], env)
    broken = next((gpu.index for gpu in gpus if gpu.index in errors), None)
    return gpus if broken is None else f"GPU {broken} does not answer: {errors[broken]}"


def _seen(gpus: Sequence[GpuReading], env: Mapping[str, str]) -> tuple[GpuReading, ...]:
    """Give those that the variables let through; all of them where numbers may mean others.

    CUDA counts the fastest GPU first unless told otherwise, NVML goes by the bus: of one kind of
    GPU that is the same order, of several kinds only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    variable = env.get("CUDA_VISIBLE_DEVICES")
    by_bus = env.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    kinds = {gpu.name for gpu in gpus if gpu.name}
    numbered = variable is not None and any(
        word.strip().isdecimal() for word in variable.split(",")
    )
    return tuple(gpus) if numbered and len(kinds) > 1 and not by_bus else visible(gpus, variable)


def _reading(gpu: Mapping[str, Any]) -> GpuReading:
    if "error" in gpu:
        return GpuReading(gpu["index"], "", "", 0, 0, {})
    processes = {one["pid"]: one["memory"] for one in gpu["processes"]}
    named = ("index", "uuid", "name", "total", "used")
    return GpuReading(**{name: gpu[name] for name in named}, processes=processes)


def visible(gpus: Sequence[GpuReading], variable: str | None) -> tuple[GpuReading, ...]:
    """Give the GPUs that CUDA_VISIBLE_DEVICES lets through, in its order.

    It may hold numbers and UUIDs, also shortened; CUDA reads up to the first that is neither. A
    part of a GPU (MIG) counts for the whole, since its memory is not told apart here.
    """
    if variable is None or "MIG-" in variable:
        return tuple(gpus)
    found: list[GpuReading] = []
    for word in variable.split(","):
        gpu = _named(gpus, word.strip())
        if gpu is None or gpu in found:
            break
        found.append(gpu)
    return tuple(found)


def _named(gpus: Sequence[GpuReading], word: str) -> GpuReading | None:
    if word.isdecimal():
        return next((gpu for gpu in gpus if gpu.index == int(word)), None)
    alike = [gpu for gpu in gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
    return alike[0] if len(alike) == 1 else None


class MemoryWatch:
    """Reads the memory when made, before a run; `finish` reads it again and compares."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self._before = read_gpus(self._env)

    def finish(self, seconds: float = SETTLE_SECONDS) -> GpuMemoryFacts:
        """Wait until the memory is back, ``seconds`` at the longest, and say what came of it."""
        if isinstance(self._before, str):
            return GpuMemoryFacts(not_measured=self._before)
        after = read_gpus(self._env, self._before, seconds)
        if isinstance(after, str):
            return GpuMemoryFacts(not_measured=f"after the run: {after}")
        return GpuMemoryFacts(compare(self._before, after))


def compare(before: Sequence[GpuReading], after: Sequence[GpuReading]) -> tuple[GpuMemory, ...]:
    """Give what each GPU held before and after, with the processes that came in between."""
    was = {gpu.uuid: gpu for gpu in before}
    return tuple(_change(was[gpu.uuid], gpu) for gpu in after if gpu.uuid in was)


def _change(was: GpuReading, now: GpuReading) -> GpuMemory:
    returned = now.used <= was.used + SLACK
    new = {} if returned else {p: m for p, m in now.processes.items() if p not in was.processes}
    holders = tuple(GpuHolder(pid, process_name(pid), memory) for pid, memory in new.items())
    return GpuMemory(
        now.index, now.uuid, now.name, now.total, was.used, now.used, returned, holders
    )


def process_name(pid: int) -> str | None:
    """Give the name of a process, None where it cannot be seen (another container's, or gone)."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return None
