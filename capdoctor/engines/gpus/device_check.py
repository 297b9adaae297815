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
from capdoctor.engines.gpus.memory import has_driver, process_name, read_gpus
from capdoctor.engines.pythons import find_python
from capdoctor.model import EngineSpec

_CHECK = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from gpus.check_device import main; main()"
)
# A context takes up to some seconds for each GPU of a large machine that was idle.
BASE_SECONDS, EACH_SECONDS = 30.0, 10.0
_MULTIPLIERS = ("pipeline_parallel_size", "data_parallel_size")


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
    told = ask([*command, str(needed)], environment, BASE_SECONDS + EACH_SECONDS * needed)
    works = not isinstance(told, NoAnswer) and told.get("ok") is True
    why = _works(told) if works and isinstance(told, dict) else _fails(told, environment)
    return DeviceState(works, why, round(time.monotonic() - begin, 3))


def _works(told: Mapping[str, Any]) -> str:
    names = [str(one["name"]) for one in told["devices"]]
    left_out = f"; without a kernel: {told['no_kernel']}" if "no_kernel" in told else ""
    return f"a known-good program runs on {', '.join(names)}{left_out}"


def _fails(told: dict[str, Any] | NoAnswer, env: Mapping[str, str]) -> str:
    if isinstance(told, NoAnswer):
        return f"a known-good program gives {told.why}" if told.stuck else told.why
    index = told.get("device")
    if index is None:
        return f"no GPU can be used: {told['why']}"
    name = f" ({told['name']})" if told.get("name") else ""
    return f"{_label(index, env)}{name}: {told['why']}" + _memory(index, told, env)


def _label(index: int, env: Mapping[str, str]) -> str:
    """Give the GPU as the user numbers it: CUDA counts the visible ones from 0."""
    words = [word.strip() for word in env.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    word = words[index] if index < len(words) and words[index] else str(index)
    return f"GPU {word}" if word.isdecimal() else word


def _memory(index: int, told: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Say who has the memory, where that is what is missing."""
    if "OUT_OF_MEMORY" not in str(told["why"]):
        return ""
    gpus = read_gpus(env)
    if isinstance(gpus, str) or index >= len(gpus):
        return ""
    held = [f"{process_name(pid) or 'process'} {pid}" for pid in gpus[index].processes]
    used = f"; {gpus[index].used >> 20} of {gpus[index].total >> 20} MiB are in use"
    return used + (f", by {', '.join(held)}" if held else "")


def gpus_needed(spec: EngineSpec) -> int | None:
    """Give how many GPUs an engine takes; None: it takes none, or that cannot be checked here."""
    if not has_driver():
        return None
    if spec.kind == "embedded":
        return 1 if spec.device == "cuda" else None
    build = find_python(spec.python).torch_build or ""
    return _ranks(spec) if build.startswith("cuda") else None


def _ranks(spec: EngineSpec) -> int:
    sizes = [spec.tensor_parallel_size or spec.engine_args.get("tensor_parallel_size")]
    sizes += [spec.engine_args.get(name) for name in _MULTIPLIERS]
    ranks = 1
    for size in sizes:
        ranks *= size if isinstance(size, int) and size > 0 else 1
    return ranks
