"""A command of the user's, run in the commit's own worktree, its output diagnosed."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.diagnosed import diagnosed
from capdoctor.bisection.probes.plain_failure import plain_signature
from capdoctor.bisection.probes.probe import Place
from capdoctor.bisection.probes.process import SIGNALLED, run_logged
from capdoctor.bisection.provisioning.isolation import caches_of, isolated
from capdoctor.bisection.provisioning.submodules import SubmoduleMissing
from capdoctor.bisection.provisioning.worktrees import Worktrees

CANNOT_JUDGE = 125
STOP = 128


@dataclass(frozen=True)
class CommandProbe:
    """Exit codes as in ``git bisect run``; ``timeout`` in seconds, a run that passes it hangs."""

    command: str
    timeout: float | None = None

    @property
    def name(self) -> str:
        """The probe as the user wrote it."""
        return self.command

    def check(self, mirror: Mirror, sha: str) -> None:
        """Any repository will do."""

    def run(self, place: Place) -> Observation:
        """Return what the command saw at the commit.

        Raises:
            CannotDo: the worktree cannot be made.
        """
        begin = time.monotonic()
        trees = Worktrees(place.mirror, place.worktrees)
        try:
            folder = trees.checkout(place.worker, place.sha, submodules=True)
        except SubmoduleMissing as error:
            return Observation(Saw.UNBUILDABLE, reason=error.sentence, provisioning="worktree")
        ready = time.monotonic()
        log = place.out / "command.log"
        env = isolated(place, place.worktrees.parent)
        try:
            code = run_logged(
                self.command, log, place, folder=folder, timeout=self.timeout, env=env
            )
        finally:
            shutil.rmtree(caches_of(place), ignore_errors=True)
        return observe_exit(code, log, (ready - begin, time.monotonic() - ready))


def observe_exit(code: int | None, log: Path, spent: tuple[float, float]) -> Observation:
    """Return what an exit code and the output say; ``spent`` is set-up and run, in seconds."""
    setup, seconds = spent
    base = Observation(
        Saw.CLEAN,
        provisioning="worktree",
        seconds=seconds,
        setup_seconds=setup,
        log=str(log),
        reason="it timed out" if code is None else f"exit code {code}",
    )
    if code is None:
        return diagnosed(base, Saw.HANG, log)
    if code == 0:
        return base
    if code == CANNOT_JUDGE:
        return replace(base, saw=Saw.UNBUILDABLE, reason="the command cannot judge it (exit 125)")
    if code >= STOP:
        return replace(base, saw=Saw.INFRA, stop=True, reason=_why_stop(code))
    return _failed(base, log, code)


def _why_stop(code: int) -> str:
    try:
        name = signal.Signals(code - SIGNALLED).name
    except ValueError:
        return f"the command asked to stop (exit {code})"
    return (
        f"the command was ended by {name} (exit {code}), and 128 or more stops a bisection as in "
        "git bisect run; if that is the crash, write the probe as 'COMMAND || exit 1'"
    )


def _failed(base: Observation, log: Path, code: int) -> Observation:
    """Return the failure with its diagnosis, or with a plainer signature where there is none."""
    seen = diagnosed(base, Saw.CRASH, log)
    if seen.signature is not None:
        return seen
    signature, title = plain_signature(log, code)
    return replace(seen, signature=signature, title=title)
