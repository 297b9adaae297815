"""A tree of another version's Python over an installed package: for commits without a build.

The compiled parts and everything that the build generates come from the installed package, as
links; the Python files come from the source. Planning is pure, laying out touches the disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from capdoctor.engines.rundir import writing
from capdoctor.errors import CannotDo
from capdoctor.model import Json

_VERSION_FILE = "_version.py"
# Python that the build of vLLM puts into the package: fetched from other projects, or generated.
# It is tracked in no commit, so that "the source lacks it" must not take it away. Seen in the
# wheels of 0.10.2 to 0.33.0 against the repository.
GENERATED = (_VERSION_FILE, "vllm_flash_attn/", "third_party/")
GENERATED_ENDINGS = ("_pb2.py", "_pb2_grpc.py")
NOT_GENERATED = ("third_party/flash_linear_attention/", "third_party/pynvml.py")


@dataclass(frozen=True, slots=True)
class OverlayInfo:
    """A tree laid out: ``root`` goes on PYTHONPATH, counts are of Python files.

    ``linked`` come from the installed package because the source has the same text or they are
    generated, ``written`` from the source, ``removed`` are those that the source lacks.
    """

    root: Path
    package: Path
    commit: str | None
    linked: int
    written: tuple[str, ...]
    removed: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """Give it as JSON."""
        return {
            "root": str(self.root),
            "package": str(self.package),
            "commit": self.commit,
            "linked": self.linked,
            "written": list(self.written),
            "removed": list(self.removed),
        }


@dataclass(frozen=True, slots=True)
class OverlayPlan:
    """What to do with each Python file, by its path inside the package."""

    link: frozenset[str]
    write: frozenset[str]
    remove: frozenset[str]


def plan_overlay(
    installed: Mapping[str, bytes],
    source: Mapping[str, bytes],
    tracked_when_built: Iterable[str] | None = None,
) -> OverlayPlan:
    """Decide file by file; keys are paths inside the package, values anything that tells texts.

    ``tracked_when_built`` are the files of the commit that the installed package was built from,
    where that is known: what is installed and was not tracked then is generated. Else names tell.
    """
    built = None if tracked_when_built is None else set(tracked_when_built)
    same = {path for path, text in source.items() if installed.get(path) == text}
    lacking = installed.keys() - source.keys()
    generated = {path for path in lacking if _is_generated(path, built)}
    return OverlayPlan(
        link=frozenset(same | generated) - {_VERSION_FILE},
        write=frozenset(source.keys() - same - {_VERSION_FILE}),
        remove=frozenset(lacking - generated - {_VERSION_FILE}),
    )


def _is_generated(path: str, tracked_when_built: set[str] | None) -> bool:
    if tracked_when_built is not None:
        return path not in tracked_when_built
    made = path.startswith(GENERATED) and not path.startswith(NOT_GENERATED)
    return made or path.endswith(GENERATED_ENDINGS)


def build_overlay(
    installed_package: Path,
    source: Path | Mapping[str, bytes],
    dest: Path,
    *,
    commit: str | None = None,
    installed_commit: str | None = None,
    version: str | None = None,
) -> OverlayInfo:
    """Lay out ``dest/<package>``: the installed package with the source's Python over it.

    ``source`` is a checkout that holds the package (its tracked files count), or a mapping of
    paths inside the package to texts. An earlier overlay at ``dest`` is replaced.

    Raises:
        CannotDo: the source does not hold the package, or ``dest`` cannot be written.
    """
    name = installed_package.name
    files = _tracked(source, name) if isinstance(source, Path) else dict(source)
    built = None
    if isinstance(source, Path) and installed_commit:
        built = _tracked_at(source, name, installed_commit)
    installed = _python_files(installed_package)
    plan = plan_overlay(installed, files, built)
    with writing(dest):
        shutil.rmtree(dest, ignore_errors=True)
        _lay_out(installed_package, dest / name, plan, files)
        text = _version_text(version, commit)
        (dest / name / _VERSION_FILE).write_text(text, encoding="utf-8")
    return OverlayInfo(
        root=dest,
        package=dest / name,
        commit=commit,
        linked=len(plan.link),
        written=tuple(sorted(plan.write)),
        removed=tuple(sorted(plan.remove)),
    )


def _lay_out(package: Path, dest: Path, plan: OverlayPlan, files: Mapping[str, bytes]) -> None:
    """Link what stays, write what differs.

    A folder in which nothing differs is one link; the others are real ones, so that nothing that
    differs is ever written through to the installed package.
    """
    touched = _folders_of(plan.write | plan.remove) | {"."}
    for folder, folders, names in os.walk(package):
        inside = Path(folder).relative_to(package)
        (dest / inside).mkdir(parents=True, exist_ok=True)
        whole = [name for name in folders if (inside / name).as_posix() not in touched]
        folders[:] = [name for name in folders if name not in whole]
        links = [name for name in names if _stays((inside / name).as_posix(), plan)]
        for name in (*links, *(name for name in whole if name != "__pycache__")):
            (dest / inside / name).symlink_to(package / inside / name)
        _link_bytecode(package, dest, inside, plan)
    for path in plan.write:
        target = dest / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[path])


def _folders_of(paths: Iterable[str]) -> set[str]:
    return {parent.as_posix() for path in paths for parent in PurePosixPath(path).parents}


def _stays(path: str, plan: OverlayPlan) -> bool:
    return not path.endswith(".py") or path in plan.link


def _link_bytecode(package: Path, dest: Path, inside: Path, plan: OverlayPlan) -> None:
    """Link the bytecode of linked sources, which saves compiling some thousand files anew."""
    for cached in (package / inside / "__pycache__").glob("*.pyc"):
        source = (inside / f"{cached.name.split('.')[0]}.py").as_posix()
        if source in plan.link:
            target = dest / inside / "__pycache__" / cached.name
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(cached)


def _python_files(package: Path) -> dict[str, bytes]:
    return {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in package.rglob("*.py")
        if path.is_file()
    }


def _tracked(checkout: Path, package: str) -> dict[str, bytes]:
    """Read the tracked Python files of a checkout's package as they are in the work tree."""
    names = _git(checkout, "ls-files", "-z", "--", package)
    if names is None:
        return _untracked(checkout, package)
    found = {}
    for name in names:
        path = checkout / name
        if name.endswith(".py") and path.is_file():
            found[PurePosixPath(name).relative_to(package).as_posix()] = path.read_bytes()
    return _some(found, checkout, package)


def _untracked(folder: Path, package: str) -> dict[str, bytes]:
    """Read a source tree that git does not know, an unpacked archive for instance."""
    return _some(_python_files(folder / package), folder, package)


def _some(found: dict[str, bytes], folder: Path, package: str) -> dict[str, bytes]:
    if "__init__.py" not in found:
        raise CannotDo(
            f"{folder} holds no tracked Python package {package}",
            f"give the folder that holds {package}/__init__.py",
        )
    return found


def _tracked_at(checkout: Path, package: str, commit: str) -> list[str] | None:
    """Give the paths of a commit, None where the checkout does not have it."""
    names = _git(checkout, "ls-tree", "-r", "-z", "--name-only", commit, "--", package)
    if not names:
        return None
    return [PurePosixPath(name).relative_to(package).as_posix() for name in names]


def _git(folder: Path, *arguments: str) -> list[str] | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, check=False
        )
    except OSError:
        return None
    if done.returncode != 0:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _version_text(version: str | None, commit: str | None) -> str:
    """Give a ``_version.py`` as the build would write it, for the commit."""
    base = (version or "0.0.0").split("+")[0]
    whole = f"{base}+g{commit[:9]}.overlay" if commit else f"{base}+overlay"
    numbers = ", ".join(part for part in base.split(".")[:3] if part.isdigit())
    commit_id = f"g{commit[:9]}" if commit else None
    return (
        f"__version__ = version = {whole!r}\n"
        f"__version_tuple__ = version_tuple = ({numbers},)\n"
        f"__commit_id__ = commit_id = {commit_id!r}\n"
    )
