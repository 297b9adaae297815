"""Find a package from a folder alone: a checkout, site-packages, an environment, the package."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.package_version import is_distribution, metadata_version


@dataclass(frozen=True, slots=True)
class Place:
    """Where a package lies and how that was found; ``version`` if the install names one."""

    folder: Path
    how: str
    version: str | None = None
    python: Path | None = None
    prefix: Path | None = None


def find_in_folder(folder: Path, fix: FixInfo) -> Place | None:
    """Give the fix's package that belongs to ``folder``; None if there is none."""
    name = fix.package
    for inner in (folder / name, folder / "src" / name):
        if is_package(inner):
            return Place(inner, f"{inner.parent} holds it")
    if name in {folder.name, folder.resolve().name} and _is_the_package(folder, fix):
        return Place(folder, "the package's own folder")
    for site in (folder, *_site_folders(folder)):
        if is_package(site / name):
            return Place(site / name, f"{site} holds it", prefix=folder)
        if found := _editable(site, fix):
            return found
    return None


def is_package(folder: Path) -> bool:
    """Say whether Python could import ``folder`` as a package with code in it."""
    return folder.is_dir() and any(path.is_file() for path in folder.rglob("*.py"))


def _is_the_package(folder: Path, fix: FixInfo) -> bool:
    """Tell the package from a checkout of the same name, whose package was not found inside."""
    inner = [Path(name).relative_to(fix.package) for name in (*fix.homes, *fix.also_read)]
    return any((folder / name).is_file() for name in [Path("__init__.py"), *inner])


def _site_folders(root: Path) -> Iterator[Path]:
    """Give the folders in which an environment or a system keeps packages."""
    for lib in ("lib", "lib64", "usr/lib", "usr/local/lib"):
        for kind in ("site-packages", "dist-packages"):
            yield from sorted((root / lib).glob(f"python3*/{kind}"))


def _editable(site: Path, fix: FixInfo) -> Place | None:
    """Follow what an editable install leaves in ``site``."""
    version = None
    for info in sorted(site.glob("*.dist-info")):
        if is_distribution(info.name, fix):
            version = metadata_version(info)
    for how, folder in _leads(site, fix):
        for candidate in (folder, folder / fix.package, folder / "src" / fix.package):
            if candidate.name == fix.package and is_package(candidate):
                return Place(candidate, f"{how} in {site} leads there", version)
    return None


def _leads(site: Path, fix: FixInfo) -> Iterator[tuple[str, Path]]:
    for info in sorted(site.glob("*.dist-info")):
        if is_distribution(info.name, fix) and (folder := _direct_url(info)):
            yield "direct_url.json", folder
    for link in sorted(site.glob("*.egg-link")):
        if is_distribution(link.name, fix):
            first = _text(link).strip().splitlines()[:1]
            yield from ((link.name, Path(line.strip())) for line in first)
    for finder in sorted(site.glob("__editable__*_finder.py")):
        yield from ((finder.name, folder) for folder in _finder_folders(finder, fix.package))
    for pth in sorted(site.glob("*.pth")):
        for line in _text(pth).splitlines():
            if line.strip() and not line.startswith(("import ", "import\t", "#")):
                yield pth.name, site / line.strip()


def _direct_url(info: Path) -> Path | None:
    try:
        data = json.loads(_text(info / "direct_url.json") or "null")
    except ValueError:
        return None
    url = data.get("url") if isinstance(data, dict) else None
    parts = urlsplit(url) if isinstance(url, str) else None
    return Path(unquote(parts.path)) if parts and parts.scheme == "file" else None


def _finder_folders(finder: Path, package: str) -> Iterator[Path]:
    """Read the MAPPING of setuptools' editable finder as data; it is not run."""
    match = re.search(r"^MAPPING\b[^=\n]*=\s*(\{.*?\})\s*$", _text(finder), re.MULTILINE)
    if match is None:
        return
    try:
        mapping = ast.literal_eval(match[1])
    except (ValueError, SyntaxError):
        return
    if isinstance(mapping, dict) and isinstance(mapping.get(package), str):
        yield Path(mapping[package])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
