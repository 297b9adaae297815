"""Are two logs the same crash?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from capdoctor.model import Diagnosis

Sameness = Literal["same", "similar", "different", "unknown"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer for two logs and the sentence that says why."""

    sameness: Sameness
    why: str

    @property
    def same(self) -> bool:
        """Whether it is the same crash."""
        return self.sameness == "same"


@dataclass(frozen=True, slots=True)
class CrashGroup:
    """Logs of the same crash; ``fingerprint`` is None for those without a crash."""

    fingerprint: str | None
    crash_class: str
    names: tuple[str, ...]


def same_crash(a: Diagnosis, b: Diagnosis) -> Comparison:
    """Compare two diagnoses by their fingerprints."""
    if a.fingerprint is None or b.fingerprint is None:
        if a.fingerprint is None and b.fingerprint is None:
            return Comparison("unknown", "neither log shows the root of a crash")
        return Comparison("different", "only one of the two logs shows a crash")
    if a.fingerprint == b.fingerprint:
        return Comparison("same", f"both have the fingerprint {a.fingerprint}")
    if a.crash_class == b.crash_class and a.fingerprint_loose == b.fingerprint_loose:
        why = "the same error at the same stage, raised in different functions"
        return Comparison("similar", why)
    return Comparison("different", _difference(a, b))


def _difference(a: Diagnosis, b: Diagnosis) -> str:
    if a.crash_class != b.crash_class:
        return f"one is {a.crash_class}, the other {b.crash_class}"
    if a.stage != b.stage:
        return f"one crashed at {a.stage}, the other at {b.stage}"
    return "the errors differ"


def group(diagnoses: Iterable[tuple[str, Diagnosis]]) -> tuple[CrashGroup, ...]:
    """Group named diagnoses by crash, the largest group first, then in the order given."""
    groups: dict[tuple[str | None, str], list[str]] = {}
    for name, diagnosis in diagnoses:
        key = (diagnosis.fingerprint, diagnosis.crash_class)
        groups.setdefault(key, []).append(name)
    found = [CrashGroup(key[0], key[1], tuple(names)) for key, names in groups.items()]
    return tuple(sorted(found, key=lambda one: -len(one.names)))
