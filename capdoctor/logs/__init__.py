"""Text of a log to lines, records, exceptions and stages. Knows formats, knows no crash.

`read_log` reads one log, `read_logs` every log of a folder or archive; both hold memory constant.
`StageTracker` follows a live engine line by line. `package_path` shortens a file name.
"""

from __future__ import annotations

from capdoctor.logs.limits import DEFAULT_LIMITS, Limits
from capdoctor.logs.paths import package_path
from capdoctor.logs.prefixes import rank_in_name
from capdoctor.logs.read import read_log, read_logs, read_text
from capdoctor.logs.stages import Progress, StageTracker
from capdoctor.logs.values import (
    UNNAMED,
    AllocatorAssert,
    CallSite,
    CaptureBar,
    Death,
    EngineArgs,
    ExceptionNode,
    Interrupt,
    Line,
    Link,
    LinkKind,
    NativeEvent,
    Origin,
    ParsedLog,
    Record,
    Run,
    StackFrame,
    StageMark,
    StreamId,
    VersionHint,
)

__all__ = [
    "DEFAULT_LIMITS",
    "UNNAMED",
    "AllocatorAssert",
    "CallSite",
    "CaptureBar",
    "Death",
    "EngineArgs",
    "ExceptionNode",
    "Interrupt",
    "Limits",
    "Line",
    "Link",
    "LinkKind",
    "NativeEvent",
    "Origin",
    "ParsedLog",
    "Progress",
    "Record",
    "Run",
    "StackFrame",
    "StageMark",
    "StageTracker",
    "StreamId",
    "VersionHint",
    "package_path",
    "rank_in_name",
    "read_log",
    "read_logs",
    "read_text",
]
