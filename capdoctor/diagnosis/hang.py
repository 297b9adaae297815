"""A start-up that waits: the line that says so, and what is known of it."""

from __future__ import annotations

from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.matching import Match, Subject, best_match
from capdoctor.diagnosis.tables import table
from capdoctor.logs import UNNAMED

_CLASS = "startup_hang"


def hang_line(case: Case) -> tuple[int, str] | None:
    """The last line that says that something waits, as number and text."""
    texts = tuple(table("native_kinds")["waiting_texts"])
    found = [
        (line.number, line.text)
        for line in case.run.lines
        if any(text in line.text for text in texts)
    ]
    return found[-1] if found else None


def known_hang(case: Case) -> Match | None:
    """The signature of a hang that fits its line, if the log has one."""
    line = hang_line(case)
    if line is None:
        return None
    number, text = line
    one = Incident(0, "native", None, text, UNNAMED, "unknown", number, number, number)
    stage = case.run.stage_at(number)
    subject = Subject(one, text.lower(), (), stage, case.platform, case.run.engine)
    hangs = [s for s in case.given.signatures if s.crash_class == _CLASS]
    return best_match(hangs, subject)
