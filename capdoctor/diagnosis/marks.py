"""Stage marks that a diagnosis trusts."""

from __future__ import annotations

from dataclasses import replace

from capdoctor.diagnosis.tables import table
from capdoctor.logs import Run, StageMark
from capdoctor.model import STAGE_ORDER, Stage

# SGLang answers HTTP before its own warm-up request; ready it is when it says so.
_HTTP_READY = "server_ready"
_FIRED_UP = "sglang_ready"
# uvicorn calls its application started before it finds the port taken, and ends.
_NOT_BOUND = "error while attempting to bind on address"


def without_decoys(run: Run) -> Run:
    """Leave out marks of lines that only speak of a stage, such as settings that turn one off."""
    decoys = tuple(table("native_kinds")["decoy_marks"])
    kept = tuple(mark for mark in run.marks if not any(text in mark.text for text in decoys))
    if run.engine == "sglang" and not any(mark.marker == _FIRED_UP for mark in kept):
        kept = tuple(mark for mark in kept if mark.marker != _HTTP_READY)
    unbound = next((line.number for line in run.lines if _NOT_BOUND in line.text), 0)
    kept = tuple(m for m in kept if m.stage is not Stage.SERVING or m.line > unbound)
    return run if len(kept) == len(run.marks) else replace(run, marks=counted_anew(kept))


def counted_anew(marks: tuple[StageMark, ...]) -> tuple[StageMark, ...]:
    """Marks whose ``reached`` counts from the first of them on."""
    counted: list[StageMark] = []
    furthest = Stage.IMPORT
    for mark in marks:
        furthest = max(furthest, mark.stage, key=STAGE_ORDER.index)
        counted.append(replace(mark, reached=furthest))
    return tuple(counted)
