"""The frozen values that pass between the rooms. They hold facts and no behaviour.

A name's module is imported when the name is first asked for: making forty frozen classes takes
longer than diagnosing a log, and no command needs them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capdoctor.model.bisections import (
        BisectAnswer,
        BisectResult,
        Culprit,
        Island,
        ProbeRun,
        ProbeVerdict,
    )
    from capdoctor.model.checks import (
        Candidate,
        Certainty,
        CheckResult,
        Covered,
        Finding,
        StaticResult,
        WouldRaise,
    )
    from capdoctor.model.diagnosis import (
        Confidence,
        Diagnosis,
        ErrorInfo,
        Evidence,
        FollowOn,
        Frame,
        KnownIssue,
        ProcessRef,
        Verdict,
        VersionClaim,
        Workaround,
    )
    from capdoctor.model.fixes import FixResult, FixSite, FixStatus
    from capdoctor.model.gpus import GpuHolder, GpuMemory, GpuMemoryFacts
    from capdoctor.model.jsonvalue import Json
    from capdoctor.model.runs import (
        EngineInfo,
        EngineSpec,
        MatrixRow,
        Outcome,
        ProcessEnd,
        RunFacts,
        RunOutcome,
        RunSummary,
        StageSpan,
    )
    from capdoctor.model.stages import STAGE_ORDER, Stage
    from capdoctor.model.traces import CaptureTrace, Offence, OffenceKind, TracedCall

_HOMES = {
    "bisections": (
        "BisectAnswer",
        "BisectResult",
        "Culprit",
        "Island",
        "ProbeRun",
        "ProbeVerdict",
    ),
    "checks": (
        "Candidate",
        "Certainty",
        "CheckResult",
        "Covered",
        "Finding",
        "StaticResult",
        "WouldRaise",
    ),
    "diagnosis": (
        "Confidence",
        "Diagnosis",
        "ErrorInfo",
        "Evidence",
        "FollowOn",
        "Frame",
        "KnownIssue",
        "ProcessRef",
        "Verdict",
        "VersionClaim",
        "Workaround",
    ),
    "fixes": (
        "FixResult",
        "FixSite",
        "FixStatus",
    ),
    "gpus": (
        "GpuHolder",
        "GpuMemory",
        "GpuMemoryFacts",
    ),
    "jsonvalue": ("Json",),
    "runs": (
        "EngineInfo",
        "EngineSpec",
        "MatrixRow",
        "Outcome",
        "ProcessEnd",
        "RunFacts",
        "RunOutcome",
        "RunSummary",
        "StageSpan",
    ),
    "stages": (
        "STAGE_ORDER",
        "Stage",
    ),
    "traces": (
        "CaptureTrace",
        "Offence",
        "OffenceKind",
        "TracedCall",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Give a value class by its name, as ``from capdoctor.model import NAME`` asks for it."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "STAGE_ORDER",
    "BisectAnswer",
    "BisectResult",
    "Candidate",
    "CaptureTrace",
    "Certainty",
    "CheckResult",
    "Confidence",
    "Covered",
    "Culprit",
    "Diagnosis",
    "EngineInfo",
    "EngineSpec",
    "ErrorInfo",
    "Evidence",
    "Finding",
    "FixResult",
    "FixSite",
    "FixStatus",
    "FollowOn",
    "Frame",
    "GpuHolder",
    "GpuMemory",
    "GpuMemoryFacts",
    "Island",
    "Json",
    "KnownIssue",
    "MatrixRow",
    "Offence",
    "OffenceKind",
    "Outcome",
    "ProbeRun",
    "ProbeVerdict",
    "ProcessEnd",
    "ProcessRef",
    "RunFacts",
    "RunOutcome",
    "RunSummary",
    "Stage",
    "StageSpan",
    "StaticResult",
    "TracedCall",
    "Verdict",
    "VersionClaim",
    "Workaround",
    "WouldRaise",
]
