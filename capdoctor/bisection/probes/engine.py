"""Probe ``engine``: start the engine at a commit, stopped after the stage in question."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from capdoctor.bisection.history.gitcall import git_or_none
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.diagnosed import with_diagnosis
from capdoctor.bisection.probes.probe import Cancelled, Place, visible_devices
from capdoctor.bisection.probes.strays import mark
from capdoctor.bisection.provisioning.engine_caches import engine_caches
from capdoctor.bisection.provisioning.overlay import overlay_verdict
from capdoctor.bisection.provisioning.worktrees import Worktrees
from capdoctor.engines.listener import Quiet, RunListener
from capdoctor.engines.start import run
from capdoctor.errors import CannotDo
from capdoctor.model import EngineSpec, Outcome, RunOutcome, Stage

RunEngine = Callable[[EngineSpec, RunListener], RunOutcome]
# Past these nothing of a start-up is left that could be stopped early.
_NO_EARLY_STOP = frozenset({Stage.CAPTURE, Stage.SERVING, Stage.SHUTDOWN})
_SAW = {
    Outcome.STARTED: Saw.CLEAN,
    Outcome.STOPPED_AFTER_STAGE: Saw.CLEAN,
    Outcome.CRASHED: Saw.CRASH,
    Outcome.HUNG: Saw.HANG,
    Outcome.SETUP_FAILED: Saw.UNBUILDABLE,
    Outcome.INTERRUPTED: Saw.INFRA,
}


class _Stoppable(Quiet):
    """Ends the run when its verdict is of no use any more: an exception here stops the engine."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled

    def time_passed(self, seconds: float) -> None:
        """Look whether somebody still waits for the run."""
        del seconds
        if self._cancelled.is_set():
            raise Cancelled


def _run(spec: EngineSpec, listener: RunListener) -> RunOutcome:
    return run(spec, listener=listener)


@dataclass(frozen=True)
class EngineProbe:
    """Starts ``spec`` over each commit's Python; ``installed_commit`` is what is underneath."""

    spec: EngineSpec
    installed_commit: str | None = None
    run_engine: RunEngine = _run
    name: str = "engine"

    def check(self, mirror: Mirror, sha: str) -> None:
        """Say before anything runs what can be known to be missing.

        Raises:
            CannotDo: the repository holds no vllm package, or no such model file.
        """
        path = self.spec.model if self.spec.kind == "embedded" else "vllm/__init__.py"
        if git_or_none(mirror.folder, "cat-file", "-e", f"{sha}:{path}") is None:
            what = "model file" if self.spec.kind == "embedded" else "vllm package"
            raise CannotDo(
                f"{mirror.source} has no {what} at {sha[:12]} ({path})",
                "give --repo the repository that the crash comes from",
            )

    def run(self, place: Place) -> Observation:
        """Return what a start of the engine at the commit saw."""
        begin = time.monotonic()
        refused = self._refuse(place)
        if refused is not None:
            return Observation(Saw.UNBUILDABLE, provisioning="none", reason=refused)
        folder = Worktrees(place.mirror, place.worktrees).checkout(place.worker, place.sha)
        spec = replace(
            self.spec,
            source=folder,
            out=place.out,
            stop_after=self.spec.stop_after or early_stop(place.stage),
            environment=self._environment(place),
        )
        ready = time.monotonic()
        try:
            outcome = self.run_engine(spec, _Stoppable(place.cancelled))
        except CannotDo as error:
            if isinstance(error.__cause__, OSError):
                raise  # a full disk or a missing Python: no commit is to blame for it
            reason = f"{error.sentence} ({error.hint})" if error.hint else error.sentence
            lost = spec.device == "cuda"  # maybe the GPU is not there any more
            return Observation(
                Saw.UNBUILDABLE, provisioning=self._how, reason=reason, starts=1, suspect=lost
            )
        seen = observe(outcome, self._how, ready - begin)
        return proven(seen, outcome, place.sha, self.spec.kind)

    def _environment(self, place: Place) -> dict[str, str]:
        caches = engine_caches(place) if self.spec.kind == "vllm" else {}
        return {**caches, **self.spec.environment, **mark(place.out), **visible_devices(place)}

    @property
    def _how(self) -> str:
        return "worktree" if self.spec.kind == "embedded" else "python overlay"

    def _refuse(self, place: Place) -> str | None:
        if self.spec.kind == "embedded":
            return None
        return overlay_verdict(place.mirror, place.sha, self.spec, self.installed_commit)


def early_stop(stage: str | None) -> Stage | None:
    """Return the stage after which a run may end: the one that the crash in question happens in.

    None for the last stages, and while nothing is known about the crash.
    """
    known = Stage(stage) if stage in set(Stage) else None
    return None if known in _NO_EARLY_STOP else known


def observe(outcome: RunOutcome, provisioning: str, setup: float) -> Observation:
    """Return what a run's outcome says, as an observation."""
    log = outcome.artifacts.get("log")
    base = Observation(
        _SAW[outcome.outcome],
        title=outcome.reason,
        provisioning=provisioning,
        seconds=outcome.seconds,
        setup_seconds=setup,
        starts=1,
        reason=outcome.reason,
        log=log,
        suspect=bool(outcome.gpu_memory and outcome.gpu_memory.kept),
    )
    return with_diagnosis(base, outcome.diagnosis) if outcome.diagnosis else base


def proven(seen: Observation, outcome: RunOutcome, sha: str, kind: str) -> Observation:
    """Return the observation, UNBUILDABLE when the run cannot prove that it ran the commit.

    The runner inside the target refuses a package imported from elsewhere (``vllm.__file__``);
    what is compared here is the commit that the tree it ran says it is.
    """
    if kind == "embedded" or outcome.engine.commit == sha:
        return seen
    ran = outcome.engine.commit or "an unknown commit"
    return Observation(
        Saw.UNBUILDABLE,
        provisioning=seen.provisioning,
        seconds=seen.seconds,
        setup_seconds=seen.setup_seconds,
        starts=seen.starts,
        log=seen.log,
        reason=f"not proven that it ran {sha[:12]}: it ran {ran[:12]}",
    )


def model_in_repository(spec: EngineSpec, source: Path) -> EngineSpec:
    """Return the spec with its model named so that it can be found from any folder.

    A model file is named as the repository knows it, a model folder by its absolute path.
    """
    if not spec.model:
        return spec
    full = Path.cwd() / Path(spec.model).expanduser()
    if spec.kind == "embedded":
        inside = full.resolve()
        within = inside.relative_to(source) if inside.is_relative_to(source) else None
        return replace(spec, model=(within or Path(spec.model)).as_posix())
    return replace(spec, model=str(full.resolve())) if full.is_dir() else spec
