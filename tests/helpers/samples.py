"""Diagnoses and runs as values, for tests of what is shown."""

from __future__ import annotations

from dataclasses import replace

from capdoctor.model import (
    Diagnosis,
    EngineInfo,
    ErrorInfo,
    Evidence,
    FollowOn,
    Frame,
    KnownIssue,
    Outcome,
    ProcessRef,
    RunOutcome,
    Stage,
    StageSpan,
    Verdict,
    VersionClaim,
    Workaround,
)

SPARSE = Diagnosis(
    verdict=Verdict.STARTUP_CRASH,
    crash_class="capture_event_outside_graph",
    stage=Stage.PROFILE_CUDAGRAPH_MEMORY,
    component="vllm",
    error=ErrorInfo(
        "torch.AcceleratorError", "CUDA error: invalid argument", 1, "cudaErrorInvalidValue"
    ),
    root_frame=Frame("vllm/v1/attention/backends/mla/index_group.py", 140, "_convert_once"),
    raised_at=Frame("torch/cuda/streams.py", 60, "wait_event"),
    process=ProcessRef("EngineCore", 4211, None),
    confidence="confirmed",
    cause="An event recorded in a captured segment is waited on after that capture ended.",
    evidence=(Evidence(412, "torch.AcceleratorError: CUDA error: invalid argument", "root error"),),
    follow_on=(FollowOn("RuntimeError", "Engine core initialization failed.", 440, "front end"),),
    versions={"vllm": VersionClaim("0.30.0", "read: line 3")},
    known_issue=KnownIssue("https://example.invalid/1", "Crash [in] capture", "#53781", "0.30.0"),
    workarounds=(Workaround("cudagraph_mode=FULL_DECODE_ONLY", "mixed batches run eagerly"),),
    fix="sparse-mla",
    fingerprint="s1:abc",
    next=("capdoctor apply-fix sparse-mla --check",),
)

CLEAN = replace(
    SPARSE,
    verdict=Verdict.CLEAN_STARTUP,
    crash_class="clean_startup",
    stage=Stage.SERVING,
    component=None,
    error=None,
    root_frame=None,
    raised_at=None,
    process=ProcessRef(),
    cause="",
    evidence=(),
    follow_on=(),
    known_issue=None,
    workarounds=(),
    fix=None,
    fingerprint=None,
    next=(),
)

RUN = RunOutcome(
    outcome=Outcome.CRASHED,
    reason="the engine's process exited with code 1",
    engine=EngineInfo("vllm", "0.30.0", "/opt/python"),
    command=("python", "runner.py"),
    seconds=43.21,
    stages=(
        StageSpan(Stage.IMPORT, 0.0, 20.0),
        StageSpan(Stage.PROFILE_CUDAGRAPH_MEMORY, 20.0, None),
    ),
    diagnosis=SPARSE,
    artifacts={"log": "/runs/1/engine.log"},
)
