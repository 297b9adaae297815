"""What a bundled fix found and did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FixStatus(StrEnum):
    """The state of a site, or of a whole target, towards one fix."""

    VULNERABLE = "vulnerable"
    PARTLY_FIXED = "partly_fixed"
    FIXED = "fixed"
    FIXED_DIFFERENTLY = "fixed_differently"
    NOT_APPLICABLE = "not_applicable"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class FixSite:
    """One place that a fix looks at; ``file`` relative to the package's parent folder."""

    file: str
    function: str | None
    status: FixStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FixResult:
    """One fix on one target. ``backup`` is the folder that ``--revert`` reads, if one was made."""

    fix: str
    target: str
    version: str | None
    status_before: FixStatus
    status_after: FixStatus
    sites: tuple[FixSite, ...] = ()
    changed_files: tuple[str, ...] = ()
    backup: str | None = None
    reason: str = ""
    diff: str = ""
    verified: str | None = None
