"""Print what every NVIDIA GPU holds: ``python read_memory.py [ORDER]``; JSON in, JSON out.

A file that is run, not imported: standard library and ``pynvml`` (nvidia-ml-py), whose calls make
no CUDA context. ORDER is ``{"until": {UUID: [BYTES, PIDS]}, "seconds": S}``: read again until no
GPU named there uses more than that, for S seconds at the most; a GPU that a living process other
than PIDS has is not waited for. The answer is ``{"gpus": [...]}``, or ``{"absent": WHY}`` where
NVML cannot be asked.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

_LOOK_AGAIN = 0.2
Bounds = dict[str, tuple[int, list[int]]]
_NO_BOUND: tuple[int, list[int]] = (1 << 62, [])


def main() -> None:
    """Read, print, end."""
    order = json.loads(sys.argv[1]) if sys.argv[1:] else {}
    answer = _asked(order.get("until") or {}, order.get("seconds", 0.0))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")  # a line of its own, whatever stands before


def _asked(until: Bounds, seconds: float) -> dict[str, Any]:
    try:
        import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return {"absent": "nvidia-ml-py is not installed"}
    try:
        pynvml.nvmlInit()
        return {"gpus": _settled(pynvml, until, seconds)}
    except pynvml.NVMLError as exc:
        return {"absent": f"NVML cannot be asked: {exc}"}


def _settled(nvml: Any, until: Bounds, seconds: float) -> list[dict[str, Any]]:
    deadline = time.monotonic() + seconds
    while True:
        gpus = [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        worth_waiting = [gpu for gpu in gpus if _may_come_back(gpu, until)]
        if not worth_waiting or time.monotonic() >= deadline:
            return gpus
        time.sleep(_LOOK_AGAIN)


def _may_come_back(gpu: dict[str, Any], until: Bounds) -> bool:
    """Say whether memory is still missing that no living process has."""
    size, known = until.get(gpu.get("uuid", ""), _NO_BOUND)
    came = [one["pid"] for one in gpu.get("processes", ()) if one["pid"] not in known]
    return gpu.get("used", 0) > size and not any(map(_lives, came))


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123 - as small as can be
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    """Return one GPU; ``error`` instead of the rest where it does not answer."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        memory = _memory(nvml, handle)
        return {
            "index": index,
            "uuid": _text(nvml.nvmlDeviceGetUUID(handle)),
            "name": _text(nvml.nvmlDeviceGetName(handle)),
            "total": memory.total,
            "used": memory.used,
            "processes": _processes(nvml, handle),
        }
    except nvml.NVMLError as exc:
        return {"index": index, "error": str(exc)}


def _memory(nvml: Any, handle: Any) -> Any:
    """Return the memory without what the driver keeps for itself, where NVML tells it apart."""
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
    except (AttributeError, TypeError, nvml.NVMLError):
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def _processes(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    """Return who has a context there; NVML does not show that everywhere."""
    try:
        found = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError:
        return []
    return [{"pid": one.pid, "memory": one.usedGpuMemory} for one in found]


def _text(value: Any) -> str:
    """Older bindings give bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    main()
