"""How a target is run."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.capture.checker.arguments import Argument


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Everything that decides how a target is run.

    ``eager`` names functions or methods of the target's module that run between the segments of
    a piecewise capture. ``stubs`` are packages to be replaced by stand-ins; ``operators`` maps
    ``namespace::name`` to ``FILE.py::function``, a Python stand-in for an operator. ``warm_up``
    is how often the function runs eagerly before it is captured.
    """

    arguments: tuple[Argument, ...] = ()
    piecewise: bool = False
    eager: tuple[str, ...] = ()
    stop_at_first: bool = False
    as_torch: str | None = None
    warm_up: int = 0
    stubs: tuple[str, ...] = ()
    operators: tuple[tuple[str, str], ...] = ()
