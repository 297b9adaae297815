"""What running code under the rules of stream capture found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from capdoctor.model.diagnosis import Frame

Certainty = Literal["likely", "possible", "weak"]


@dataclass(frozen=True, slots=True)
class WouldRaise:
    """The error that a real device would raise; ``code`` is the driver's, None for torch's own."""

    type: str
    code: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One illegal operation, at the user's own line. ``stack`` is outermost first."""

    rule: str
    file: str
    line: int
    function: str
    operation: str
    message: str
    would_raise: WouldRaise
    invalidates: bool
    stack: tuple[Frame, ...] = ()
    legal_way: str = ""


@dataclass(frozen=True, slots=True)
class Covered:
    """How much was seen: operations counted, and what the checker could not look into."""

    operations: int
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of ``check`` for one target."""

    target: str
    findings: tuple[Finding, ...]
    covered: Covered


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place that the static pass holds for illegal; nothing about it is proven.

    ``confirmed_by`` is the rule that running it under the rules would report.
    """

    rule: str
    file: str
    line: int
    function: str
    operation: str
    certainty: Certainty
    message: str
    why: str
    legal_way: str = ""
    confirmed_by: str = ""


@dataclass(frozen=True, slots=True)
class StaticResult:
    """What the static pass found in one tree, surest candidate first."""

    target: str
    candidates: tuple[Candidate, ...]
    files: int
    functions: int
    unreadable: tuple[str, ...] = ()
