"""Ask whether the GPUs of a run still work, by a program that is known to be good."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capdoctor.engines.gpus.asking import NoAnswer, ask
from capdoctor.engines.gpus.memory import count_gpus, process_name, read_gpus

_CHECK = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from gpus.check_device import main; main()"
)
# A context takes up to some seconds for each GPU of a large machine that was idle.
BASE_SECONDS, EACH_SECONDS = 30.0, 10.0
_VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Whether the GPUs work; ``why`` is a clause that names the one that does not."""

    works: bool
    why: str
    seconds: float


def device_state(env: Mapping[str, str], needed: int = 0) -> DeviceState:
    """Compute, capture, replay and copy on ``needed`` of the GPUs that ``env`` lets through.

    0 means all of them. It takes about a second, and no longer than a deadline whatever the
    driver does.
    """
    begin = time.monotonic()
    environment = {**os.environ, **env, "CUDA_CACHE_DISABLE": "1"}
    command = [sys.executable, "-I", "-S", "-c", _CHECK, str(Path(__file__).parent.parent)]
    told = ask([*command, str(needed)], environment, _deadline(needed, environment), ("ok",))
    works = not isinstance(told, NoAnswer) and told.get("ok") is True
    why = _works(told) if works and isinstance(told, dict) else _fails(told, environment)
    return DeviceState(works, why, round(time.monotonic() - begin, 3))


def _deadline(needed: int, env: Mapping[str, str]) -> float:
    named = env.get(_VISIBLE, "").split(",")
    gpus = needed or (len(named) if named != [""] else count_gpus())
    return BASE_SECONDS + EACH_SECONDS * gpus


def _works(told: Mapping[str, Any]) -> str:
    names = [str(one["name"]) for one in told["devices"]]
    left_out = f"; without a kernel: {told['no_kernel']}" if "no_kernel" in told else ""
    return f"a known-good program runs on {', '.join(names)}{left_out}"


def _fails(told: dict[str, Any] | NoAnswer, env: Mapping[str, str]) -> str:
    if isinstance(told, NoAnswer):
        return f"a known-good program gives {told.why}" if told.stuck else told.why
    index = told.get("device")
    if index is None:
        seen = f", with {_VISIBLE}={env[_VISIBLE]!r}" if _VISIBLE in env else ""
        return f"no GPU can be used{seen}: {told['why']}"
    name = f" ({told['name']})" if told.get("name") else ""
    return f"{_label(index, env)}{name}: {told['why']}" + _memory(told)


def _label(index: int, env: Mapping[str, str]) -> str:
    """Give the GPU as the user numbers it: CUDA counts the visible ones from 0."""
    words = [word.strip() for word in env.get(_VISIBLE, "").split(",")]
    word = words[index] if index < len(words) and words[index] else str(index)
    return f"GPU {word}" if word.isdecimal() else word


def _memory(told: Mapping[str, Any]) -> str:
    """Say who has the memory, where that is what is missing.

    CUDA and NVML number GPUs in orders of their own, and a part of one (MIG) is another thing to
    each of them: only the UUID says that both mean the same.
    """
    if "OUT_OF_MEMORY" not in str(told["why"]):
        return ""
    gpus = read_gpus({})
    alike = [gpu for gpu in gpus if gpu.uuid == told.get("uuid")] if isinstance(gpus, tuple) else []
    if not alike:
        return ""
    held = [f"{process_name(pid) or 'process'} {pid}" for pid in alike[0].processes]
    used = f"; {alike[0].used >> 20} of {alike[0].total >> 20} MiB are in use"
    return used + (f", by {', '.join(held)}" if held else "")
