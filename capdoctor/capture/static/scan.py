"""Scan a tree or a file: read, follow, rank."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from capdoctor.capture.static.rank import candidates
from capdoctor.capture.static.reach import Tree
from capdoctor.capture.static.read_file import read_file
from capdoctor.capture.static.summary import FileSummary
from capdoctor.errors import CannotDo
from capdoctor.model import StaticResult

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", ".git", ".tox", ".venv", "venv", "build"}
# Below this many files a second process costs more than it brings.
_FILES_WORTH_A_PROCESS = 200

_Job = tuple[Path, str, str]


def scan(target: Path, *, workers: int | None = None) -> StaticResult:
    """Give the candidates of a folder or a file, surest first.

    Raises:
        CannotDo: the target does not exist or holds no Python file.
    """
    jobs = list(_jobs(target))
    if not jobs:
        raise CannotDo(f"there is no Python file at {target}", "name a folder or a .py file")
    files = _read_all(jobs, workers)
    unreadable = tuple(f"{file.path}: {file.unreadable}" for file in files if file.unreadable)
    return StaticResult(
        target=str(target),
        candidates=tuple(candidates(Tree(files))),
        files=len(files),
        functions=sum(len(file.functions) for file in files),
        unreadable=unreadable,
    )


def _read_all(jobs: list[_Job], workers: int | None) -> list[FileSummary]:
    count = workers or min(len(os.sched_getaffinity(0)), 8)
    if count == 1 or len(jobs) < _FILES_WORTH_A_PROCESS:
        return [_read(job) for job in jobs]
    # A tree of syntax nodes has no cycles: looking for them costs a tenth of the time.
    with ProcessPoolExecutor(count, initializer=gc.disable) as pool:
        return list(pool.map(_read, jobs, chunksize=32))


def _read(job: _Job) -> FileSummary:
    return read_file(*job)


def _jobs(target: Path) -> Iterator[_Job]:
    if target.is_file():
        yield target, target.name, module_name(target)
        return
    if not target.is_dir():
        raise CannotDo(f"{target} does not exist", "name a folder or a .py file")
    for path in _python_files(target):
        yield path, path.relative_to(target).as_posix(), module_name(path)


def _python_files(folder: Path) -> Iterable[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        yield from (Path(root) / name for name in sorted(names) if name.endswith(".py"))


def module_name(path: Path) -> str:
    """Give the dotted name under which the file would be imported."""
    path = path.absolute()
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(parts))
