"""Which platform a run was on: CUDA, ROCm or CPU."""

from __future__ import annotations

from capdoctor.diagnosis.driver_errors import platform_of
from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import Run

_LOOKED_AT = 2_000
_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rocm", ("platform rocm", "rocm_aiter", "[aiter]", "hip error", "rocm version", "rocmplatform",
              "hiperror", "amd instinct", "gfx9", "gfx11", "gfx12", "rccl")),
    ("cpu", ("platform cpu", "cpu_worker.py", "cpu_model_runner", "platform is cpu",
             "cpuplatform")),
    ("cuda", ("platform cuda", "cuda error", "nvidia", "cuda version", "cudaplatform",
              "cuda graph", "nccl==")),
)  # fmt: skip


def platform_of_run(run: Run) -> str | None:
    """Tell by the first sign in the log; None where there is none."""
    text = "\n".join(line.text for line in run.lines[:_LOOKED_AT]).lower()
    for platform, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return platform
    return None


def platform_of_incident(one: Incident, of_run: str | None) -> str | None:
    """Tell by the incident's own text when that names HIP, else by the run."""
    own = platform_of(one.message)
    return own if own == "rocm" else of_run or own
