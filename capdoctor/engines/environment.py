"""The environment of an engine process: offline, quiet, isolated; what the user set stays."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from capdoctor.engines.tracer_plugin import TRACE_FOLDER, Tracing, variables

MARKER = "CAPDOCTOR_RUN"
_QUIET = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # The stack of every thread when a process gets SIGABRT, which a hung one is sent at the end.
    "PYTHONFAULTHANDLER": "1",
    # Lines come as they are printed; a pipe would hold them back.
    "PYTHONUNBUFFERED": "1",
    # `python -m` in a vLLM checkout would import the checkout instead of the installed package.
    "PYTHONSAFEPATH": "1",
    # setproctitle would write over the environment, by which stray processes are recognised.
    "SPT_NOENV": "1",
}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
# Where an engine keeps what it compiles: the variables, and a folder's name for each.
COMPILE_CACHES = {
    "VLLM_CACHE_ROOT": "vllm",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
}
_TELLING = re.compile(
    r"(VLLM|CUDA|NVIDIA|HIP|HSA|ROCR|ROCM|AMD|AITER|NCCL|RCCL|TORCH|PYTORCH|TRITON|FLASHINFER|"
    r"HF|TRANSFORMERS|OMP|KMP|PYTHON|LD|RAY|GLOO|UCX|CAPDOCTOR|TMPDIR|DO_NOT)"
)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def engine_environment(
    base: Mapping[str, str],
    *,
    run_id: str,
    tmpdir: Path,
    caches: Path,
    driver_log: Path,
    offline: bool,
    python_path: Sequence[Path],
    tracing: Tracing | None = None,
) -> dict[str, str]:
    """Give the variables of an engine process.

    Variables in ``base`` win over ours, except the temporary folder, the marker, what the tracer
    needs, and the places of the overlay and the tracer on PYTHONPATH. The driver's log is
    CUDA_LOG_FILE or, on ROCm, AMD_LOG_LEVEL_FILE at the level of errors.
    """
    ours = dict(_QUIET)
    ours |= _OFFLINE if offline else {}
    ours |= {name: str(caches / folder) for name, folder in COMPILE_CACHES.items()}
    ours |= {"CUDA_LOG_FILE": str(driver_log)}
    ours |= {"AMD_LOG_LEVEL": "1", "AMD_LOG_LEVEL_FILE": str(driver_log)}
    forced = {MARKER: run_id, "TMPDIR": str(tmpdir)}
    if tracing is not None:
        forced |= variables(base, tracing)
    first = [*python_path, *([tracing.plugin] if tracing and tracing.plugin else [])]
    if first:
        rest = base.get("PYTHONPATH")
        forced["PYTHONPATH"] = os.pathsep.join([*map(str, first), *([rest] if rest else [])])
    given = {name: value for name, value in base.items() if name != TRACE_FOLDER}
    return {**ours, **given, **forced}


def telling(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the variables that decide how an engine starts, secrets blotted out."""
    return {
        name: "<hidden>" if _SECRET.search(name) else value
        for name, value in sorted(environment.items())
        if _TELLING.match(name)
    }
