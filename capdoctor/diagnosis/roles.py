"""Which of the engine's processes an exception comes from, where its prefix does not say."""

from __future__ import annotations

from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.incident import Role
from capdoctor.logs import ExceptionNode, StreamId

_BY_FRAME: tuple[tuple[Role, tuple[str, ...]], ...] = (
    (
        "worker",
        ("*:worker_busy_loop", "*:worker_main", "*:_execute_worker_rpc", "*/ray_utils.py:*"),
    ),
    ("engine", ("*:run_engine_core", "*:run_scheduler_process", "*:run_busy_loop")),
    (
        "frontend",
        ("*:launch_core_engines", "*:wait_for_engine_startup", "*:make_client", "*:make_async_mp*"),
    ),
)
_BY_HEADLINE: tuple[tuple[Role, str], ...] = (
    ("worker", "WorkerProc "),
    ("engine", "EngineCore "),
    ("engine", "Scheduler hit an exception"),
)


def role_of(node: ExceptionNode) -> Role:
    """Worker, engine or front end: by prefix, then headline, then frames."""
    if node.stream.role != "unknown":
        return node.stream.role
    if node.process_name:
        named = StreamId(name=node.process_name).role
        if named != "unknown":
            return named
    headline = node.record.message if node.record else ""
    for role, start in _BY_HEADLINE:
        if headline.startswith(start):
            return role
    return _role_by_frames(node)


def _role_by_frames(node: ExceptionNode) -> Role:
    for role, globs in _BY_FRAME:
        if any(frame_fits(f.path or f.file, f.function, globs) for f in node.frames):
            return role
    return "unknown"
