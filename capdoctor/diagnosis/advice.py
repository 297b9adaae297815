"""What to say and do: the sentence of the cause, workarounds, and the next command lines."""

from __future__ import annotations

from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.pep440 import contains, parse
from capdoctor.diagnosis.signature import Signature
from capdoctor.diagnosis.tables import table
from capdoctor.model import Stage, Workaround

_NOTHING_PRINTED = (
    "the log ends without an error and before the engine was ready: it was cut, the process was "
    "killed (SIGKILL leaves no trace), or it still waits"
)
_NEXT_FOR_MISSING = (
    "VLLM_LOGGING_LEVEL=DEBUG vllm serve … 2>&1 | tee engine.log   # both streams, all processes",
    "CUDA_LOG_FILE=stderr   # in the environment: driver 12.9 or newer explains its own errors",
)
_NEXT_FOR_LOST_CAPTURE = (
    "capdoctor repro --model … --trace   # names the first operation that broke the capture"
)


def cause_of(crash_class: str, signature: Signature | None) -> str:
    """The sentence that explains the class, the signature's own where it has one."""
    if signature is not None and signature.cause:
        return signature.cause
    row = table("classes")["classes"].get(crash_class)
    return str(row["cause"]) if row else ""


def workarounds_of(crash_class: str, signature: Signature | None) -> tuple[Workaround, ...]:
    """Workarounds with their price: the signature's first, then the class's."""
    own = signature.workarounds if signature is not None else ()
    row = table("classes")["classes"].get(crash_class, {})
    general = tuple(Workaround(w["do"], w["cost"]) for w in row.get("workarounds", ()))
    taken = {workaround.do for workaround in own}
    return (*own, *(w for w in general if w.do not in taken))


def next_of(crash_class: str, signature: Signature | None) -> tuple[str, ...]:
    """Command lines worth running."""
    lines: list[str] = []
    if signature is not None:
        if signature.fix:
            lines.append(f"capdoctor apply-fix {signature.fix} --check")
        lines += signature.next
    row = table("classes")["classes"].get(crash_class, {})
    return tuple(dict.fromkeys([*lines, *row.get("next", ())]))


def missing_cause(case: Case) -> tuple[str, tuple[str, ...]]:
    """For a log without a root: the sentence that says what would show it, and commands."""
    orphans = [e for e in case.explained.values() if e.cause is None and e.show]
    if not orphans:
        return f"No cause is in this log: {_NOTHING_PRINTED}.", _NEXT_FOR_MISSING
    nearest = min(orphans, key=lambda explanation: explanation.level)
    sentence = f"Only follow-on errors are in this log: {nearest.why}. Look for {nearest.show}."
    traced = (_NEXT_FOR_LOST_CAPTURE,) if nearest.rule in _of_lost_captures() else ()
    return sentence, (*traced, *_NEXT_FOR_MISSING)


def _of_lost_captures() -> frozenset[str]:
    """The follow-on errors that a capture leaves behind which an earlier operation had broken."""
    rows = table("follow_ons")["rows"]
    return frozenset(row["id"] for row in rows if row["cause"] == "capture")


def version_warning(signature: Signature | None, versions: dict[str, str]) -> str | None:
    """A warning when the version in the log should already have the fix, or never had the fault."""
    if signature is None:
        return None
    for package, spec in signature.affects:
        mine = versions.get(package)
        if mine and parse(mine) is not None and not contains(spec, mine):
            return (
                f"{signature.id} is known from {package} {spec}, the log says {mine}: "
                "a modified build, a backport, or a fault that only looks the same"
            )
    return None


def stage_by_class(crash_class: str) -> Stage | None:
    """The stage that a class implies where the log says nothing."""
    row = table("classes")["classes"].get(crash_class, {})
    return Stage(row["stage"]) if "stage" in row else None
