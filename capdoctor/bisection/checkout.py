"""Judge what is checked out right now, for ``capdoctor bisect probe`` under ``git bisect run``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from capdoctor.bisection.device_control import AskDevice
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.engine import model_in_repository, observe
from capdoctor.bisection.reference import read_reference
from capdoctor.bisection.verdicts import Judged, judge
from capdoctor.engines.gpus.device_check import device_state
from capdoctor.engines.gpus.needed import gpus_needed
from capdoctor.errors import CannotDo
from capdoctor.model import EngineSpec, ProbeVerdict, RunOutcome


class GitExit(IntEnum):
    """What ``git bisect run`` makes of an exit code: 128 and more stop it."""

    GOOD = 0
    BAD = 1
    CANNOT_JUDGE = 125
    STOP = 128


_EXITS = {
    ProbeVerdict.GOOD: GitExit.GOOD,
    ProbeVerdict.BAD: GitExit.BAD,
    ProbeVerdict.INFRA: GitExit.STOP,
}


@dataclass(frozen=True, slots=True)
class CheckoutVerdict:
    """The verdict on a checkout, and the exit code that tells git."""

    verdict: ProbeVerdict
    reason: str
    observation: Observation
    exit_code: GitExit


def judge_checkout(
    folder: Path,
    spec: EngineSpec,
    reference: Path | None,
    *,
    run_engine: Callable[[EngineSpec], RunOutcome],
    any_failure: bool = False,
    ask: AskDevice = device_state,
) -> CheckoutVerdict:
    """Start the engine over the Python of a checkout and judge the run against a reference.

    Without a reference every crash of an engine that could be imported counts as bad. After a
    fault the GPUs are asked whether they still work (``ask``); if not, only the very crash of the
    reference is evidence.

    Raises:
        CannotDo: the reference cannot be read.
        Interrupted: the user stopped it.
    """
    wanted = read_reference(reference) if reference else None
    started = replace(model_in_repository(spec, folder.resolve()), source=folder.resolve())
    try:
        seen = observe(run_engine(started), "checkout", 0.0)
    except CannotDo as error:
        lost = spec.device == "cuda"  # maybe the GPU is not there any more
        reason = error.sentence
        seen = Observation(Saw.UNBUILDABLE, provisioning="checkout", reason=reason, suspect=lost)
    judged = judge(seen, wanted, any_failure=any_failure)
    same = wanted is not None and judged.verdict is ProbeVerdict.BAD and not judged.loosely
    broken = None if same else _broken_device(seen, spec, ask)
    if broken is not None:
        judged = Judged(ProbeVerdict.INFRA, "infra", reason=broken)
    return _verdict(seen, judged)


def _broken_device(seen: Observation, spec: EngineSpec, ask: AskDevice) -> str | None:
    """Say what is wrong with the GPUs after a run that may have met, or left, broken ones."""
    needed = gpus_needed(spec) if seen.sticky or seen.suspect else None
    if needed is None:
        return None
    state = ask(spec.environment, needed)
    return None if state.works else f"after the run the device fails by itself ({state.why})"


def _verdict(seen: Observation, judged: Judged) -> CheckoutVerdict:
    code = _EXITS.get(judged.verdict, GitExit.CANNOT_JUDGE)
    reason = judged.reason or seen.title or seen.reason
    return CheckoutVerdict(judged.verdict, reason, seen, code)
