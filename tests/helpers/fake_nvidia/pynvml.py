"""Stands in for nvidia-ml-py: GPUs as the JSON file FAKE_NVML describes them.

``{"error": TEXT}``, or ``{"gpus": [{"used": [BYTES, ...], ...}]}``: the n-th reading of a GPU gives
the n-th number of ``used``, later ones the last. ``hang``: the first call never returns.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

nvmlMemory_v2 = 2  # noqa: N816 - NVML's own name


class NVMLError(Exception):
    """What NVML raises."""


@dataclass
class _State:
    told: dict[str, Any]
    readings: int = 0


_STATE = _State(json.loads(Path(os.environ["FAKE_NVML"]).read_text()))


def nvmlInit() -> None:  # noqa: N802
    if _STATE.told.get("hang"):
        time.sleep(600)
    if "error" in _STATE.told:
        raise NVMLError(_STATE.told["error"])


def nvmlShutdown() -> None:  # noqa: N802
    """Nothing was opened."""


def nvmlDeviceGetCount() -> int:  # noqa: N802
    _STATE.readings += 1
    return len(_STATE.told["gpus"])


def nvmlDeviceGetHandleByIndex(index: int) -> dict[str, Any]:  # noqa: N802
    gpu: dict[str, Any] = _STATE.told["gpus"][index]
    if "lost" in gpu:
        raise NVMLError("GPU is lost")
    return {"uuid": f"GPU-{index:04d}", **gpu}


def nvmlDeviceGetUUID(gpu: dict[str, Any]) -> str:  # noqa: N802
    return str(gpu["uuid"])


def nvmlDeviceGetName(gpu: dict[str, Any]) -> bytes:  # noqa: N802
    return str(gpu.get("name", "Fake GPU")).encode()  # as bindings before 11.5 did


def nvmlDeviceGetMemoryInfo(gpu: dict[str, Any], version: int | None = None) -> SimpleNamespace:  # noqa: N802
    if version is not None and gpu.get("old_driver"):
        raise NVMLError("Function Not Found")
    used = gpu["used"][min(_STATE.readings, len(gpu["used"])) - 1]
    return SimpleNamespace(total=8 << 30, used=used)


def nvmlDeviceGetComputeRunningProcesses(gpu: dict[str, Any]) -> list[SimpleNamespace]:  # noqa: N802
    if "processes" not in gpu:
        raise NVMLError("Insufficient Permissions")
    return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in gpu["processes"]]
