"""What a fix is put into: a package's folder, found without importing the package."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.folder_search import Place, find_in_folder
from capdoctor.vendored_fixes.package_version import version_of
from capdoctor.vendored_fixes.python_search import ask_python


@dataclass(frozen=True, slots=True)
class Target:
    """A package's folder. ``how`` says how it was found; ``prefix`` is its environment, if known.

    ``folder`` is a real path: links on the way to the package are followed.
    """

    package: str
    folder: Path
    how: str
    version: str | None = None
    python: Path | None = None
    prefix: Path | None = None


def find_target(text: str | None, fix: FixInfo) -> Target:
    """Give the package that ``fix`` is for, in a Python, a checkout, a site-packages folder.

    ``text`` may also be the package's own folder or an environment's root; None means the first
    Python on PATH that has the package, else the one that runs capdoctor.

    Raises:
        CannotDo: there is no such file, it is neither Python nor folder, or has no such package.
    """
    if text is None:
        return _with_version(_default(fix), fix)
    path = Path(text).expanduser()
    if os.sep not in text and not os.path.lexists(path):
        path = Path(shutil.which(text) or path)  # a command, like python3.12
    if not os.path.lexists(path):
        raise CannotDo(f"There is no {text}.", "Give a Python, a checkout or a package folder.")
    if path.is_dir():
        return _with_version(_in_folder(path, fix), fix)
    if path.is_file() and os.access(path, os.X_OK):
        return _with_version(_in_python(path, fix), fix)
    kind = "a link to nothing" if path.is_symlink() and not path.exists() else "not a Python"
    raise CannotDo(
        f"{text} is {kind}, so it cannot be a target.",
        "Give the Python that has the package, or a folder.",
    )


def _with_version(target: Target, fix: FixInfo) -> Target:
    return replace(target, version=target.version or version_of(target.folder, fix))


def _in_folder(path: Path, fix: FixInfo) -> Target:
    found = find_in_folder(path, fix)
    if found is not None:
        return _target(found, fix)
    python = next((p for p in _environment_pythons(path) if os.access(p, os.X_OK)), None)
    if python is not None:
        return _in_python(python, fix)
    raise CannotDo(
        f"There is no package {fix.package} in {path}.",
        f"Give the folder that holds {fix.package}/, or the Python that has it.",
    )


def _environment_pythons(path: Path) -> Iterator[Path]:
    yield from (path / "bin" / "python", path / "bin" / "python3")


def _in_python(path: Path, fix: FixInfo) -> Target:
    found = ask_python(path, fix)
    if found is None:
        raise CannotDo(
            f"{path} has no package {fix.package}.",
            "Give the Python that the engine runs with, or the package's folder.",
        )
    return _target(found, fix)


def _target(found: Place, fix: FixInfo) -> Target:
    return Target(
        package=fix.package,
        folder=found.folder.resolve(),
        how=found.how,
        version=found.version,
        python=found.python,
        prefix=found.prefix,
    )


def _default(fix: FixInfo) -> Target:
    """Look at each Python on PATH, then at our own."""
    for python in _pythons():
        try:
            found = ask_python(python, fix)
        except CannotDo:
            continue  # a broken Python on PATH is not the one that was meant
        if found is not None:
            return _target(found, fix)
    raise CannotDo(
        f"No Python on PATH has the package {fix.package}.",
        "Name one with --target, or give a checkout or a site-packages folder.",
    )


def _pythons() -> Iterator[Path]:
    seen: set[str] = set()
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in ("python3", "python"):
            found = shutil.which(name, path=folder) if folder else None
            if found and found not in seen:
                seen.add(found)
                yield Path(found)
                break
    if sys.executable not in seen:
        yield Path(sys.executable)
