"""The verdict of one run: only the same crash counts as bad."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.search.evidence import Mark
from capdoctor.model import ProbeVerdict, Stage

# What went wrong around the engine and not in the commit: such a run never votes.
AROUND = frozenset(
    {
        "gpu_memory_busy",
        "device_not_found",
        "driver_incompatible",
        "host_memory_exhausted",
        "shm_too_small",
        "port_in_use",
        "hub_access",
        "user_interrupt",
    }
)


@dataclass(frozen=True, slots=True)
class Reference:
    """The crash that is looked for. ``hang``: it is no crash but a start-up that hangs."""

    signature: str | None
    loose: str | None = None
    title: str = ""
    hang: bool = False
    crash_class: str | None = None
    function: str | None = None
    stage: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict; ``label`` tells islands apart, ``loosely`` says that only the looser one fits."""

    verdict: ProbeVerdict
    label: str = ""
    loosely: bool = False
    reason: str = ""


def reference_of(seen: Observation) -> Reference:
    """Return what a run that crashed or hung gives to look for."""
    return Reference(
        seen.signature,
        seen.loose,
        seen.title,
        seen.saw is Saw.HANG,
        seen.crash_class,
        seen.root.function if seen.root else None,
        seen.stage,
    )


def first_crash(seen: Observation) -> Reference | None:
    """Return the reference that a first reproduction gives; None if it is no reproduction."""
    return reference_of(seen) if judge(seen, None).verdict is ProbeVerdict.BAD else None


def judge(seen: Observation, reference: Reference | None, *, any_failure: bool = False) -> Judged:
    """Return the verdict of a run against the crash that is looked for.

    Without a reference a crash is BAD: it is the first reproduction, and becomes the reference.
    """
    if seen.saw is Saw.CLEAN:
        return Judged(ProbeVerdict.GOOD)
    if seen.saw is Saw.INFRA:
        return Judged(ProbeVerdict.INFRA, "infra", reason=seen.reason)
    if seen.saw is Saw.UNBUILDABLE:
        label = f"unbuildable {seen.signature or ''}".strip()
        return Judged(ProbeVerdict.UNBUILDABLE, label, reason=seen.reason)
    return _judge_crash(seen, reference, any_failure=any_failure)


def _judge_crash(seen: Observation, reference: Reference | None, *, any_failure: bool) -> Judged:
    same = _same(seen, reference)
    if same is not None:
        return Judged(ProbeVerdict.BAD, loosely=same == "loosely")
    if seen.crash_class in AROUND:
        return Judged(ProbeVerdict.INFRA, "infra", reason=seen.title or seen.reason)
    if any_failure:
        return Judged(ProbeVerdict.BAD, reason="any failure counts")
    if seen.saw is Saw.HANG:
        return Judged(ProbeVerdict.HANG, "hang", reason=seen.title or "it hung")
    label = seen.signature or "no signature"
    reason = seen.title or seen.reason or "it crashed without a signature"
    if seen.stage == Stage.IMPORT:
        label = f"unbuildable {label}"
        return Judged(ProbeVerdict.UNBUILDABLE, label, reason=f"does not import: {reason}")
    return Judged(ProbeVerdict.OTHER, label, reason=reason)


def _same(seen: Observation, reference: Reference | None) -> str | None:
    if reference is None:
        fit = seen.crash_class not in AROUND and (seen.signature or seen.saw is Saw.HANG)
        return "exactly" if fit else None
    if reference.hang:
        return "exactly" if seen.saw is Saw.HANG else None
    if seen.saw is not Saw.CRASH:
        return None
    if seen.signature and seen.signature == reference.signature:
        return "exactly"
    return "loosely" if _alike(seen, reference) else None


def _alike(seen: Observation, reference: Reference) -> bool:
    """Say whether it is the same crash in code that has moved: error, class and function agree.

    The looser fingerprint alone (error and stage) would take every other crash of a stage with
    the same error for this one.
    """
    known = seen.crash_class not in (None, "unknown", "root_cause_not_in_log")
    function = seen.root.function if seen.root else None
    return bool(
        known
        and seen.loose
        and seen.loose == reference.loose
        and seen.crash_class == reference.crash_class
        and function
        and function == reference.function
    )


def mark_of(verdict: ProbeVerdict) -> Mark | None:
    """Return how a verdict counts in the search; None: it does not count at all."""
    if verdict is ProbeVerdict.BAD:
        return Mark.CRASH
    if verdict is ProbeVerdict.GOOD:
        return Mark.CLEAN
    return None if verdict is ProbeVerdict.INFRA else Mark.SKIP
