"""Does a signature fit? Conditions against what is known of one incident and its surroundings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from capdoctor.diagnosis.frames import path_of
from capdoctor.diagnosis.globs import frame_fits
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.pep440 import contains
from capdoctor.diagnosis.signature import Condition, Signature
from capdoctor.diagnosis.tables import regex_hints
from capdoctor.logs import StackFrame
from capdoctor.model import Confidence, Stage

_INNERMOST = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """What a condition may ask about; texts are lower case. ``frames`` include the chain's."""

    incident: Incident
    text: str
    frames: tuple[StackFrame, ...]
    stage: Stage | None
    platform: str | None
    engine: str | None
    versions: Mapping[str, str] = field(default_factory=dict)
    context: str = ""
    args: str = ""
    driver_log: str = ""
    exits: frozenset[str] = frozenset()

    @property
    def source(self) -> str:
        """The source lines of the innermost frames."""
        return "\n".join(frame.code for frame in self.incident.frames[-_INNERMOST:]).lower()


@dataclass(frozen=True, slots=True)
class Match:
    """A signature that fits, and the alternative by which it does.

    ``kinds``, ``decisive`` and ``at_most`` count every signature of the same class that fits: they
    support each other.
    """

    signature: Signature
    condition: Condition
    kinds: frozenset[str] = frozenset()
    decisive: bool = False
    at_most: Confidence | None = None

    @property
    def strength(self) -> int:
        """What decides between signatures that fit."""
        return self.condition.weight + self.signature.priority

    def same_class(self, other: Match) -> bool:
        """Whether both name the same class."""
        return self.signature.crash_class == other.signature.crash_class


def best_match(signatures: Iterable[Signature], subject: Subject) -> Match | None:
    """Give the strongest signature that fits; among equals the first by id."""
    matches = [m for m in (match_one(one, subject) for one in signatures) if m is not None]
    if not matches:
        return None
    best = max(matches, key=lambda match: match.strength)
    return _supported(best, [m for m in matches if m.same_class(best)])


def _supported(best: Match, matches: list[Match]) -> Match:
    caps = [match.condition.at_most or match.signature.at_most for match in matches]
    capped = caps[0] if all(caps) else None
    return replace(
        best,
        kinds=frozenset(kind for match in matches for kind in match.condition.kinds),
        decisive=any(match.signature.decisive for match in matches),
        at_most=capped,
    )


def match_one(signature: Signature, subject: Subject) -> Match | None:
    """Match one signature: its strongest alternative that holds, unless a veto does."""
    holding = [condition for condition in signature.when if holds(condition, subject)]
    if not holding or any(holds(veto, subject) for veto in signature.unless):
        return None
    return Match(signature, max(holding, key=lambda condition: condition.weight))


def holds(condition: Condition, subject: Subject) -> bool:
    """Whether every part of one alternative holds."""
    return all(_TESTS[name](values, subject) for name, values in condition.wants) and all(
        _version_fits(package, spec, subject) for package, spec in condition.versions
    )


def _version_fits(package: str, spec: str, subject: Subject) -> bool:
    known = subject.versions.get(package)
    return known is not None and contains(spec, known)


@lru_cache(maxsize=4096)
def _lower(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value.lower() for value in values)


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def _found(pattern: str, subject: Subject) -> bool:
    hints = regex_hints().get(pattern)
    if hints is not None and not any(hint in subject.text for hint in hints):
        return False
    return _regex(pattern).search(subject.incident.text) is not None


def _any_in(values: tuple[Any, ...], text: str) -> bool:
    return any(value in text for value in _lower(values))


def _code(values: tuple[Any, ...], subject: Subject) -> bool:
    driver = subject.incident.driver
    return driver is not None and driver.code in values


def _name(values: tuple[Any, ...], subject: Subject) -> bool:
    driver = subject.incident.driver
    return driver is not None and (driver.name in values or driver.short in values)


def _type(values: tuple[Any, ...], subject: Subject) -> bool:
    return subject.incident.type in values or subject.incident.short_type in values


def _frames_fit(values: tuple[Any, ...], frames: Iterable[StackFrame]) -> bool:
    return any(frame_fits(path_of(frame), frame.function, values) for frame in frames)


def _innermost(values: tuple[Any, ...], subject: Subject) -> bool:
    return _frames_fit(values, subject.incident.frames[-_INNERMOST:])


_Test = Callable[[tuple[Any, ...], Subject], bool]
_TESTS: dict[str, _Test] = {
    "code": _code,
    "name": _name,
    "type": _type,
    "kind": lambda values, s: s.incident.kind in values,
    "stage": lambda values, s: s.stage in values,
    "stage_not": lambda values, s: s.stage not in values,
    "platform": lambda values, s: s.platform in values,
    "engine": lambda values, s: s.engine in values,
    "exit": lambda values, s: any(value in s.exits for value in values),
    "text": lambda values, s: _any_in(values, s.text),
    "text_all": lambda values, s: all(value in s.text for value in _lower(values)),
    "text_not": lambda values, s: not _any_in(values, s.text),
    "regex": lambda values, s: any(_found(value, s) for value in values),
    "headline": lambda values, s: _any_in(values, s.incident.headline.lower()),
    "context": lambda values, s: _any_in(values, s.context),
    "args": lambda values, s: _any_in(values, s.args),
    "driver_log": lambda values, s: _any_in(values, s.driver_log),
    "source": lambda values, s: _any_in(values, s.source),
    "source_regex": lambda values, s: any(_regex(value).search(s.source) for value in values),
    "frame": lambda values, s: _frames_fit(values, s.frames),
    "frame_not": lambda values, s: not _frames_fit(values, s.frames),
    "innermost": _innermost,
}
