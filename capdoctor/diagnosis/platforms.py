"""Which platform a run was on: CUDA, ROCm or CPU."""

from __future__ import annotations

from capdoctor.diagnosis.driver_errors import platform_of
from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import Run

_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rocm", ("platform rocm", "rocm_aiter", "[aiter]", "hip error", "rocm version", "rocmplatform",
              "hiperror", "amd instinct", "gfx9", "gfx11", "gfx12", "rccl")),
    ("cpu", ("platform cpu", "cpu_worker.py", "cpu_model_runner", "platform is cpu",
             "cpuplatform")),
    ("cuda", ("platform cuda", "cuda error", "nvidia", "cuda version", "cudaplatform",
              "cuda graph", "nccl==")),
)  # fmt: skip


def platform_of_run(run: Run, root: Incident | None) -> str | None:
    """Tell by the root's own text, else by the first sign in the log; None where there is none."""
    if root is not None:
        own = platform_of(root.message)
        if own == "rocm":
            return own
    text = "\n".join(line.text for line in run.lines[:2000]).lower()
    for platform, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return platform
    return platform_of(root.message) if root is not None else None
