"""The two phases of the visit with the capture tracer on: the crash, and what a start costs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capdoctor.engines.environment import COMPILE_CACHES
from tests.gpu.starts import STOP, engine_options

if TYPE_CHECKING:
    from tests.gpu.flagship.visit import Visit

LLAMA = Path(__file__).resolve().parents[2] / "data/models/llama_tiny"
LLAMA_ARGS = {"max_model_len": 2048, "max_num_seqs": 64, "gpu_memory_utilization": 0.35}
LIMIT = ("--timeout", "150")


def trace_broken(visit: Visit) -> Any:
    """The tracer in the flagship crash: the record inside the segment, the wait outside."""
    plain = (visit.results.get("repro_broken") or {}).get("diagnosis")
    found = visit.repro("trace-broken", "--source", visit.repo, "--trace", *STOP, *LIMIT)
    _keep_traces(visit, "trace-broken")
    diagnosis = found.get("diagnosis") or {}
    seen = diagnosis.get("trace") or {}
    return {
        "answer": found,
        "kind": seen.get("kind"),
        "used_at": _innermost(seen.get("call")),
        "recorded_at": _innermost(seen.get("earlier")),
        "same_as_untraced": plain
        and {
            key: diagnosis.get(key) == plain.get(key)
            for key in ("class", "stage", "root_frame", "fingerprint")
        },
    }


def _innermost(call: dict[str, Any] | None) -> Any:
    if not call:
        return None
    return {"operation": call["operation"], "frame": (call["stack"] or [None])[-1]}


def _keep_traces(visit: Visit, name: str) -> None:
    """Copy what the tracer itself wrote, and the driver, out of the run's folder."""
    run = visit.work / "runs" / name
    for path in (*run.glob("trace/*"), run / "driver.log", run / "engine.log"):
        if path.is_file():
            (visit.out / f"{name}-{path.name}").write_bytes(path.read_bytes())


def trace_cost(visit: Visit) -> Any:
    """A clean start to the end of the stage with the tracer off and on, in turns, caches warm."""
    warm = (visit.work / "caches").exists()
    for name, folder in COMPILE_CACHES.items():
        os.environ.setdefault(name, str(visit.work / "caches" / folder))
    rounds = [("off-1", False), ("on-1", True), ("off-2", False), ("on-2", True)]
    rounds = rounds if warm else [("warm-up", False), *rounds]
    runs = {name: _llama(visit, f"trace-cost-{name}", traced) for name, traced in rounds}
    _keep_traces(visit, "trace-cost-on-2")
    ends = {name: _end_of_stage(run) for name, run in runs.items()}
    off = [ends[name] for name in ("off-1", "off-2") if ends[name]]
    on = [ends[name] for name in ("on-1", "on-2") if ends[name]]
    ratio = round(min(on) / min(off), 3) if on and off else None
    return {"ends": ends, "ratio_of_best": ratio, "runs": runs}


def _llama(visit: Visit, name: str, traced: bool) -> dict[str, Any]:
    return visit.capdoctor(
        name,
        *("repro", "--model", LLAMA, "--python", sys.executable, *STOP, *LIMIT),
        *("--out", visit.work / "runs" / name),
        *engine_options(LLAMA_ARGS),
        *(["--trace"] if traced else []),
    )


def _end_of_stage(run: dict[str, Any]) -> float | None:
    ends = {stage["name"]: stage["end"] for stage in run.get("stages", ())}
    return ends.get("profile_cudagraph_memory")
