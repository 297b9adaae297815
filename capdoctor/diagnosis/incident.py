"""One thing that went wrong, whatever form the log gives it.

The log room knows exceptions, native lines and deaths; from here on each is an `Incident`, so that
links, rules and fingerprints treat them alike.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from capdoctor.diagnosis.driver_errors import DriverError
from capdoctor.logs import Death, Line, NativeEvent, StackFrame, StreamId

Kind = Literal["python", "native", "death"]
Role = Literal["worker", "engine", "frontend", "unknown"]


@dataclass(frozen=True, slots=True)
class Incident:
    """A failure as the log tells it; ``frames`` are outermost first.

    ``raised_from`` is the incident that was being handled, or named as the cause, when this one
    was raised; ``quoted_in`` the one whose message quotes this one. Both are indices. ``level`` and
    ``headline`` are those of the log record that carries it, None and "" for raw text. ``ignored``:
    the interpreter printed it and went on, as it does for an error in a finaliser. ``uncaught``: it
    was printed as what ended a process (``Process EngineCore_DP0:``).
    """

    index: int
    kind: Kind
    type: str | None
    message: str
    stream: StreamId
    role: Role
    line: int
    error_line: int
    last_line: int
    frames: tuple[StackFrame, ...] = ()
    native_frames: tuple[StackFrame, ...] = ()
    headline: str = ""
    level: str | None = None
    driver: DriverError | None = None
    raised_from: int | None = None
    quoted_in: int | None = None
    member_of: int | None = None
    event: NativeEvent | None = None
    death: Death | None = None
    bare: bool = False
    truncated_head: bool = False
    cut_off: bool = False
    ignored: bool = False
    uncaught: bool = False

    @property
    def first_line_of_message(self) -> str:
        """The message up to its first line break."""
        return self.message.split("\n", 1)[0].strip()

    @property
    def short_type(self) -> str:
        """The last part of the exception's type."""
        return (self.type or "").rsplit(".", 1)[-1]

    @property
    def text(self) -> str:
        """``Type: message`` as a traceback ends."""
        if self.type is None:
            return self.message
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class Clue:
    """A line that is no failure of its own and says something about one."""

    line: int
    text: str
    stream: StreamId
    driver: DriverError | None = None
    event: NativeEvent | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an incident is not a root: ``cause`` is None when what explains it is not in the log."""

    cause: int | None
    why: str
    show: str = ""
    rule: str = ""
    level: int = 0


def lines_between(lines: tuple[Line, ...], first: int, last: int) -> tuple[Line, ...]:
    """Those of the kept lines whose numbers lie in a span; lines are in order of number."""
    low = bisect_left(lines, first, key=_number)
    return lines[low : bisect_right(lines, last, lo=low, key=_number)]


def shown(lines: tuple[Line, ...], number: int, otherwise: str) -> str:
    """The line as a reader saw it, or the given text where it was not kept."""
    found = lines_between(lines, number, number)
    return found[0].shown if found else otherwise


def _number(line: Line) -> int:
    return line.number
