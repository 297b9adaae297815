"""What a bisection is doing, on stderr: the commit under test, the range as a picture, the time.

Plain lines: they read alike on a terminal and in the log of a CI job.
"""

from __future__ import annotations

import sys
from typing import TextIO

from capdoctor.bisection import Planned, Tested, Testing
from capdoctor.report.safe_text import one_line

_SHORT = 12


class BisectProgress:
    """The listener of a bisection."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def planned(self, plan: Planned) -> None:
        """Say how large the range is and where the journal lies."""
        self._say(f"{plan.commits} commits; journal in {plan.work_dir}")
        for note in plan.notes:
            self._say(f"note: {note}")

    def testing(self, what: Testing) -> None:
        """Say which commit is run, what is left, and show the range."""
        time = "" if what.minutes is None else f", about {what.minutes:.0f} min"
        self._say(f"[{what.picture}] {what.candidates} candidates, {what.left} runs left{time}")
        self._say(f"{what.purpose}: {what.sha[:_SHORT]} {one_line(what.title, 80)}")

    def tested(self, what: Tested) -> None:
        """Say how a run ended."""
        reason = f" ({one_line(what.reason, 120)})" if what.reason else ""
        self._say(f"  {what.verdict.value}{reason}, {what.seconds:.1f} s")

    def noted(self, sentence: str) -> None:
        """Say what the user should know."""
        self._say(f"note: {sentence}")

    def _say(self, text: str) -> None:
        self._stream.write(one_line(text) + "\n")
        self._stream.flush()
