"""The logs with an answer beside them, and ways to compare an answer with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capdoctor.model import Diagnosis, Frame, Verdict

DATA = Path(__file__).resolve().parent.parent / "data"
FOLDERS = (DATA / "corpus", DATA / "diagnosis")


@dataclass(frozen=True)
class Expected:
    """One log and what must be read out of it."""

    log: Path
    answer: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.log.relative_to(DATA))

    def accepted(self, key: str) -> list[Any]:
        """The right answer and those that count as right too."""
        return [self.answer.get(key), *self.answer.get(f"{key}_accept", [])]


def expected_logs() -> list[Expected]:
    found = []
    for folder in FOLDERS:
        for file in sorted(folder.rglob("*.expect.json")):
            log = file.with_name(file.name.replace(".expect.json", ".log"))
            found.append(Expected(log, json.loads(file.read_text(encoding="utf-8"))))
    return found


def frame_is(frame: Frame | None, wanted: str | None) -> bool:
    """Whether a frame is the one written as ``file:line function`` (line, function may lack)."""
    if wanted is None or frame is None:
        return wanted is None and frame is None
    forms = {
        f"{frame.file}:{frame.line} {frame.function}",
        f"{frame.file}:{frame.line}",
        f"{frame.file} {frame.function}",
    }
    return wanted in forms


def all_text(diagnosis: Diagnosis) -> str:
    """Everything that an answer quotes of the log."""
    error = diagnosis.error
    parts = [f"{error.type}: {error.message}"] if error else []
    parts += [item.text for item in diagnosis.evidence]
    parts += [f"{item.type}: {item.message}" for item in diagnosis.follow_on]
    return "\n".join(parts)


def is_startup_crash(diagnosis: Diagnosis) -> bool:
    return diagnosis.verdict in {Verdict.STARTUP_CRASH, Verdict.ROOT_CAUSE_NOT_IN_LOG}
