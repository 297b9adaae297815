"""The Python that has the engine: which one, what it has. Nothing is imported to find out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capdoctor.engines.in_target import describe_python
from capdoctor.errors import CannotDo

_DESCRIBE_SECONDS = 60
_INSTALL_HINT = "install vllm there, or give the Python that has it with --python"


@dataclass(frozen=True, slots=True)
class InstalledVllm:
    """A vLLM as its metadata describes it.

    ``package`` is the folder that is imported, ``checkout`` the source folder of an editable
    install, ``commit`` what ``_version.py`` or the checkout says.
    """

    distribution: str
    version: str | None
    package: Path
    commit: str | None
    checkout: Path | None


@dataclass(frozen=True, slots=True)
class TargetPython:
    """A Python that could run an engine; ``torch_build`` is ``cuda 13.0``, ``hip 7.1``, ``cpu``."""

    executable: Path
    version: str
    prefix: Path
    vllm: InstalledVllm | None
    torch: str | None
    torch_build: str | None


def find_python(explicit: Path | None = None) -> TargetPython:
    """Give the Python that has vLLM: ``explicit``, else the first on PATH, else our own.

    Raises:
        CannotDo: the given one is not there, dies at once, or has no vLLM; or none has.
    """
    if explicit is not None:
        target = describe(_executable(explicit))
        if target.vllm is None:
            raise CannotDo(f"{explicit} has no vllm installed", _INSTALL_HINT)
        return target
    for candidate in _candidates():
        try:
            target = describe(candidate)
        except CannotDo:
            continue
        if target.vllm is not None:
            return target
    raise CannotDo("no Python on PATH has vllm installed", _INSTALL_HINT)


def describe(executable: Path) -> TargetPython:
    """Ask a Python what it is.

    Raises:
        CannotDo: it cannot be executed, or dies without an answer.
    """
    command = [str(executable), str(Path(describe_python.__file__))]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_DESCRIBE_SECONDS,
        )
    except subprocess.TimeoutExpired as exc:
        raise CannotDo(f"{executable} gives no answer", "is it a Python?") from exc
    except OSError as exc:
        raise CannotDo(f"{executable} cannot be executed: {exc.strerror}", _INSTALL_HINT) from exc
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith(describe_python.MARK):
            try:
                return _target(executable, json.loads(line[len(describe_python.MARK) :]))
            except (ValueError, KeyError, TypeError) as exc:
                raise CannotDo(f"{executable} gives no answer", "is it a Python?") from exc
    raise CannotDo(*_died(executable, done))


def _died(executable: Path, done: subprocess.CompletedProcess[bytes]) -> tuple[str, str]:
    """Say how a Python failed that should have answered."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    last = f": {lines[-1]}" if lines else ""
    return (
        f"the Python {executable} dies at once (exit {done.returncode}){last}",
        f"does `{executable} -c pass` work? It must be Python 3.9 or newer",
    )


def _target(executable: Path, facts: dict[str, Any]) -> TargetPython:
    engine = facts["engine"]
    return TargetPython(
        executable=executable,
        version=facts["version"],
        prefix=Path(facts["prefix"]),
        vllm=_installed(engine) if engine else None,
        torch=facts["torch"],
        torch_build=facts["torch_build"],
    )


def _installed(engine: dict[str, Any]) -> InstalledVllm:
    checkout = Path(engine["checkout"]) if engine["checkout"] else None
    commit = engine["commit"]
    if checkout is not None:
        commit = git_commit(checkout) or commit
    return InstalledVllm(
        distribution=engine["distribution"],
        version=engine["version"],
        package=Path(engine["package"]),
        commit=commit,
        checkout=checkout,
    )


def git_commit(folder: Path) -> str | None:
    """Return the commit that a checkout stands at, None where git does not know the folder."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "HEAD"],
            capture_output=True,
            check=False,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _executable(given: Path) -> Path:
    """Return the file behind ``--python``: a path, a name on PATH, or a virtual environment."""
    if given.is_dir() and (given / "bin/python").exists():
        return (given / "bin/python").absolute()
    found = shutil.which(str(given))
    if found is None:
        raise CannotDo(f"there is no Python at {given}", "give the path of a python executable")
    return Path(found).absolute()


def _candidates() -> Iterator[Path]:
    """Yield the Pythons on PATH in its order, then our own, each once."""
    seen: set[Path] = set()
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    on_path = (path for folder in folders for path in _pythons_in(folder))
    for path in (*on_path, Path(sys.executable)):
        if path not in seen:
            seen.add(path)
            yield path


def _pythons_in(folder: Path) -> list[Path]:
    names = ["python3", "python", *(f"python3.{minor}" for minor in range(9, 20))]
    return [folder / name for name in names if os.access(folder / name, os.X_OK)]
