"""The GPUs' memory around one run: read before it, read after it, said where it did not return."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from capdoctor.engines.gpus.memory import MemoryWatch
from capdoctor.engines.prepare import Prepared
from capdoctor.model import GpuHolder, GpuMemory, Outcome, RunOutcome

_MIB = 1 << 20


def watch_memory(prepared: Prepared) -> MemoryWatch | None:
    """Read what the GPUs hold before a run; None for an engine that takes no NVIDIA GPU."""
    if not takes_nvidia_gpu(prepared):
        return None
    return MemoryWatch({**os.environ, **prepared.spec.environment})


def takes_nvidia_gpu(prepared: Prepared) -> bool:
    """Say whether the engine is built for CUDA, or told to use it."""
    if prepared.target is None:
        return prepared.spec.device == "cuda"
    return (prepared.target.torch_build or "").startswith("cuda")


def with_memory(answer: RunOutcome, watch: MemoryWatch | None) -> RunOutcome:
    """Give the answer with what the GPUs held before and after, and a note on what stayed."""
    if watch is None:
        return answer
    facts = watch.finish()
    kept = tuple(kept_note(gpu) for gpu in facts.kept)
    # Of an interrupted run the user sees the reason alone.
    told = kept if answer.outcome is Outcome.INTERRUPTED else ()
    reason = "; ".join((answer.reason, *told))
    return replace(answer, reason=reason, gpu_memory=facts, notes=(*answer.notes, *kept))


def kept_note(gpu: GpuMemory) -> str:
    """Say of one GPU what it holds more than before, and who has it."""
    more = f"{(gpu.after - gpu.before) / _MIB:.0f} MiB more than before the run"
    held = _named(gpu.holders) or "and no process is shown that has it"
    return f"GPU {gpu.index} holds {more}, {held}"


def _named(holders: Iterable[GpuHolder]) -> str:
    named = [f"{holder.name or 'a process that cannot be seen'} {holder.pid}" for holder in holders]
    return f"held by {', '.join(named)}" if named else ""
