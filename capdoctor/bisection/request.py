"""What is asked of a bisection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capdoctor.model import EngineSpec


@dataclass(frozen=True, slots=True)
class BisectRequest:
    """Everything that decides how a bisection goes.

    ``repo`` is ``vllm``, ``aiter`` or a folder; ``probe`` is ``engine``, ``scenario:NAME``,
    ``fix:ID`` or a shell command; ``engine`` says what the engine probe starts (its ``source`` is
    filled in for every commit). ``reference`` is a run's folder or a log. ``flaky``: the crash is
    known not to happen every time. ``budget`` is in minutes, ``timeout`` in seconds for one run
    of a command. ``gpus``: one entry of visible devices a worker. ``installed_commit``: what the
    installed binaries were built from, where the package does not say it itself.
    """

    repo: str
    good: str
    bad: str
    probe: str = "engine"
    engine: EngineSpec | None = None
    reference: Path | None = None
    paths: tuple[str, ...] = ()
    first_parent: bool = True
    find_fix: bool = False
    revert_check: bool = False
    any_failure: bool = False
    gpus: tuple[str, ...] = ()
    workers: int = 1
    budget: float | None = None
    confirm: int = 3
    flaky: bool = False
    timeout: float | None = None
    installed_commit: str | None = None

    @property
    def older(self) -> str:
        """The revision that must come first in history."""
        return self.bad if self.find_fix else self.good

    @property
    def newer(self) -> str:
        """The revision that must come last in history."""
        return self.good if self.find_fix else self.bad
