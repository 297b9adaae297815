"""What a fix room offers to the shop, and what it gets.

A room is a folder with ``fix.toml`` (what it repairs), ``fix.py`` (``read`` and ``rewrite``),
``cases/`` and ``README.md``. Both functions are pure: file names and bytes in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from capdoctor.model import FixSite, FixStatus

Files = Mapping[str, bytes]
"""File names relative to the package's parent folder (``vllm/forward_context.py``) to bytes."""


REPAIRED = frozenset({FixStatus.FIXED, FixStatus.FIXED_DIFFERENTLY})
"""What a tree may read as after a change: a site that someone else repaired stays as it is."""


@dataclass(frozen=True, slots=True)
class FixInfo:
    """What a fix repairs, as its ``fix.toml`` says.

    ``markers`` are the byte strings of which a file must hold one to matter; ``homes`` are the
    files where the fault usually lives and ``also_read`` files the reading needs beside those
    with a marker, all relative to the package's parent folder. ``scenario`` is what ``repro
    --scenario`` runs to see the fault.
    """

    id: str
    version: str
    package: str
    distributions: tuple[str, ...]
    title: str
    repairs: str
    upstream_issue: str
    upstream_pull: str
    introduced_by: str
    fixed_in: str
    retire_when: str
    scenario: str
    markers: tuple[str, ...]
    homes: tuple[str, ...] = ()
    also_read: tuple[str, ...] = ()
    room: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the code says about a fix; ``reason`` explains a status that no single site does."""

    status: FixStatus
    sites: tuple[FixSite, ...] = ()
    reason: str = ""


class Room(Protocol):
    """The two functions of a room's ``fix.py``."""

    def read(self, files: Files) -> Reading:
        """Decide from the code alone; must not import LibCST."""
        ...

    def rewrite(self, files: Files) -> dict[str, bytes]:
        """Give the changed files, in the order in which they have to reach the disk.

        Raises:
            CannotDo: the code has a shape that the fix does not know; nothing is changed then.
        """
        ...
