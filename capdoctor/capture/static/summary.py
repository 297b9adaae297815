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
    """One operation that a capture would refuse if it ran there. ``sure`` is a values grade.

    ``origin`` is the parameter that the value came in by. ``default_of`` is the parameter whose
    being left out leads here.
    """

    rule: str
    line: int
    operation: str
    sure: int
    seldom: bool
    origin: str = ""
    default_of: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may be followed: ``local:NAME``, ``self:CLASS.NAME`` or a dotted name.

    ``given`` holds the positions and names of its arguments, ``on_host`` those that are known to
    lie in host memory; with a star in the call they are not ``exact``.
    """

    target: str
    seldom: bool
    given: frozenset[int | str] = frozenset()
    on_host: frozenset[int | str] = frozenset()
    exact: bool = True


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
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileSummary:
    """One file; ``unreadable`` is the reason why nothing is known of it."""

    path: str
    module: str
    functions: tuple[FunctionSummary, ...] = ()
    imports: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: str = ""
