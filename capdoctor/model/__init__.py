"""The frozen values that pass between the rooms. They hold facts and no behaviour."""

from __future__ import annotations

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

__all__ = [
    "STAGE_ORDER",
    "BisectAnswer",
    "BisectResult",
    "Candidate",
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
    "Island",
    "Json",
    "KnownIssue",
    "MatrixRow",
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
    "Verdict",
    "VersionClaim",
    "Workaround",
    "WouldRaise",
]
