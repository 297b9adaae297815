"""One signature: when it fits, which class it names, what is known about it.

A signature is a TOML file. ``when`` is a list of alternatives; inside one alternative every
condition must hold; a list inside a condition means "one of these". ``unless`` has the same form
and vetoes. The schema is in ``data/schema.toml``; ``schema.py`` checks files against it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from capdoctor.model import Confidence, KnownIssue, Workaround

# How much a condition that holds says; the signature with the highest sum answers.
WEIGHTS = {
    "code": 3,
    "name": 3,
    "type": 2,
    "text": 4,
    "text_all": 5,
    "regex": 5,
    "frame": 4,
    "innermost": 4,
    "source": 3,
    "source_regex": 3,
    "headline": 2,
    "context": 3,
    "args": 2,
    "driver_log": 4,
    "exit": 3,
    "stage": 2,
    "platform": 1,
    "engine": 1,
    "kind": 1,
    "versions": 2,
}
KNOWN_ISSUE_BONUS = 20
DECISIVE_BONUS = 3


@dataclass(frozen=True, slots=True)
class Condition:
    """One alternative: condition name to the values that satisfy it, and what must not be there."""

    wants: tuple[tuple[str, tuple[Any, ...]], ...]
    versions: tuple[tuple[str, str], ...] = ()
    at_most: Confidence | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of evidence that this alternative rests on."""
        named = tuple(name for name, _ in self.wants)
        return (*named, "versions") if self.versions else named

    @property
    def weight(self) -> int:
        """The sum of what its conditions say."""
        return sum(WEIGHTS.get(kind, 0) for kind in self.kinds)


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature as read from its file; ``file`` is for warnings and tests."""

    id: str
    crash_class: str
    file: str
    when: tuple[Condition, ...]
    unless: tuple[Condition, ...] = ()
    title: str = ""
    cause: str = ""
    component: str | None = None
    error_type: str | None = None
    priority: int = 0
    decisive: bool = False
    at_most: Confidence | None = None
    fix: str | None = None
    known: KnownIssue | None = None
    affects: tuple[tuple[str, str], ...] = ()
    workarounds: tuple[Workaround, ...] = ()
    next: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    tests: tuple[str, ...] = field(default=())


def build(content: dict[str, Any], file: str) -> Signature:
    """Make a signature of checked content (see ``schema.check``)."""
    known = content.get("known")
    return Signature(
        id=content["id"],
        crash_class=content["class"],
        file=file,
        when=tuple(_condition(one) for one in content["when"]),
        unless=tuple(_condition(one) for one in content.get("unless", ())),
        title=content.get("title", ""),
        cause=content.get("cause", ""),
        component=content.get("component"),
        error_type=content.get("error_type"),
        priority=_priority(content),
        decisive=content.get("decisive", False),
        at_most=content.get("at_most"),
        fix=content.get("fix"),
        known=_known(known, content.get("title", "")) if known else None,
        affects=tuple(content.get("affects", {}).items()),
        workarounds=tuple(Workaround(w["do"], w["cost"]) for w in content.get("workarounds", ())),
        next=tuple(content.get("next", ())),
        links=tuple(content.get("links", ())),
        tests=tuple(content.get("tests", ())),
    )


def _priority(content: dict[str, Any]) -> int:
    bonus = KNOWN_ISSUE_BONUS if "known" in content else 0
    return (
        int(content.get("priority", 0)) + bonus + (DECISIVE_BONUS if content.get("decisive") else 0)
    )


def _condition(content: dict[str, Any]) -> Condition:
    apart = {"versions", "at_most"}
    wants = [(key, _values(value)) for key, value in content.items() if key not in apart]
    versions = tuple(content.get("versions", {}).items())
    return Condition(tuple(wants), versions, content.get("at_most"))


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _known(known: dict[str, Any], title: str) -> KnownIssue:
    return KnownIssue(
        url=known["url"],
        title=known.get("title", title),
        introduced_by=known.get("introduced_by"),
        fixed_in=known.get("fixed_in"),
    )
