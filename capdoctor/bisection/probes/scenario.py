"""Probe ``scenario:NAME``: drive the real sources of a commit on the virtual device."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from capdoctor.bisection.history.gitcall import git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.diagnosed import diagnosed
from capdoctor.bisection.probes.probe import Place
from capdoctor.bisection.probes.process import run_logged
from capdoctor.bisection.provisioning.worktrees import Worktrees
from capdoctor.capture import scenarios
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import RunFacts

PACKAGES = {"sparse-mla": "vllm", "fold-indptr": "aiter"}
TIMEOUT = 300.0
# The folder we are called from may hold a vllm or an aiter of its own.
OWN_MODULES = {"PYTHONSAFEPATH": "1"}
NOT_SET_UP = 3
NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class ScenarioProbe:
    """Runs one scenario over a commit's tree; a tree that lacks the code cannot crash in it."""

    scenario: str
    device: Literal["cpu", "cuda"] = "cpu"
    as_torch: str | None = None

    @property
    def name(self) -> str:
        """The probe as the user wrote it."""
        return f"scenario:{self.scenario}"

    def check(self, mirror: Mirror, sha: str) -> None:
        """Say before anything runs that the package is missing.

        Raises:
            CannotDo: the repository does not hold the package.
        """
        package = PACKAGES[self.scenario]
        if git_or_none(mirror.folder, "cat-file", "-e", f"{sha}:{package}") is None:
            raise CannotDo(
                f"{mirror.source} holds no {package} package at {sha[:12]}",
                f"the scenario {self.scenario} needs a repository of {package}",
            )

    def run(self, place: Place) -> Observation:
        """Return what the scenario saw at the commit."""
        begin = time.monotonic()
        folder = Worktrees(place.mirror, place.worktrees).checkout(place.worker, place.sha)
        place.out.mkdir(parents=True, exist_ok=True)
        ready = time.monotonic()
        log = place.out / "engine.log"
        line = scenarios.command(self.scenario, folder, self.device, self.as_torch, place.out)
        code = run_logged(line, log, place, timeout=TIMEOUT, env=OWN_MODULES)
        base = Observation(
            Saw.CLEAN,
            provisioning="worktree",
            seconds=time.monotonic() - ready,
            setup_seconds=ready - begin,
            starts=1,
            log=str(log),
        )
        return self._observed(base, code, log, place.out)

    def _observed(self, base: Observation, code: int | None, log: Path, out: Path) -> Observation:
        if code is None:
            return replace(base, saw=Saw.HANG, reason=f"no end within {TIMEOUT:.0f} s")
        if code == 0:
            return base
        reason = _told(out / "scenario.json") or f"exit code {code}"
        if code == NOT_SET_UP and reason.startswith(NOT_APPLICABLE):
            return replace(base, reason=reason)
        if code == NOT_SET_UP:
            # Maybe the GPU is not there any more: that is worth a look.
            lost = self.device == "cuda"
            return replace(base, saw=Saw.UNBUILDABLE, reason=reason, suspect=lost)
        facts = RunFacts(how="exited", exit_code=code, engine="embedded")
        return diagnosed(replace(base, reason=reason), Saw.CRASH, log, facts)


def _told(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["reason"])
    except (OSError, ValueError, KeyError):
        return None


def scenario_probe(
    name: str, device: Literal["cpu", "cuda"], as_torch: str | None
) -> ScenarioProbe:
    """Return the probe for a scenario.

    Raises:
        UsageError: there is no such scenario.
    """
    if name not in scenarios.NAMES:
        raise UsageError(
            f"no scenario is called {name!r}", f"there are: {', '.join(scenarios.NAMES)}"
        )
    return ScenarioProbe(name, device, as_torch)
