"""What the tracer left behind after a run, and what is to be said about it."""

from __future__ import annotations

from capdoctor.engines.rundir import RunFolder
from capdoctor.engines.tracer_plugin import unusable
from capdoctor.model import CaptureTrace, EngineSpec
from capdoctor.report.trace_text import fault_notes


def notes_on(trace: CaptureTrace | None, spec: EngineSpec, folder: RunFolder) -> tuple[str, ...]:
    """Give sentences on how well the run was traced; none where it was not to be."""
    if not spec.trace:
        return ()
    if trace is None:
        why = unusable(folder.plugin) if spec.kind == "vllm" else None
        return (f"the capture tracer ran in no process{': ' + why if why else ''}",)
    return fault_notes(trace)
