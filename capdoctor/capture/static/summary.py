"""What one file says about itself: functions, whom they call, what looks illegal in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

# Why a function counts as running inside a capture, from the surest on.
Root = Literal[
    "captured",
    "forward",
    "operator",
    "apply",
    "orders_streams",
    "launcher",
    "takes_tensors",
    "named",
]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """One operation that a capture would refuse if it ran there. ``sure`` is a values grade."""

    rule: str
    line: int
    operation: str
    sure: int
    seldom: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may be followed: ``local:NAME``, ``self:CLASS.NAME`` or a dotted name."""

    target: str
    seldom: bool


@dataclass(frozen=True, slots=True)
class FunctionSummary:
    """One function or method. ``blocked`` says why nothing in it runs inside a capture."""

    name: str
    line: int
    root: Root | None
    blocked: str
    seldom: bool
    suspicions: tuple[Suspicion, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class FileSummary:
    """One file; ``unreadable`` is the reason why nothing is known of it."""

    path: str
    module: str
    functions: tuple[FunctionSummary, ...] = ()
    imports: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: str = ""
