"""The folder of a run: which files it has, and how they are written."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from capdoctor.diagnosis import run_files
from capdoctor.errors import CannotDo, CapdoctorError
from capdoctor.host import runs_folder
from capdoctor.model import Json

_SENTENCES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file-size limit is reached",
    errno.EACCES: "there is no permission to write",
    errno.EPERM: "there is no permission to write",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a part of the path is a file",
    errno.EEXIST: "a file is in the way",
}
# In a folder without it nothing was written by us, so nothing there is ours to replace.
_MARK = run_files.MARK


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where the files of one run lie."""

    root: Path

    @property
    def log(self) -> Path:
        """Everything the engine printed, both streams, until it was to end."""
        return self.root / run_files.LOG

    @property
    def timing(self) -> Path:
        """For each line of the log: seconds since the start, stream (``out``, ``err``)."""
        return self.root / "engine.timing.tsv"

    @property
    def after(self) -> Path:
        """What was printed after the engine was told to end; the stacks of a hung one."""
        return self.root / run_files.AFTER

    @property
    def spec(self) -> Path:
        """What the engine was started with."""
        return self.root / "spec.json"

    @property
    def report(self) -> Path:
        """What the runner inside the target Python noted."""
        return self.root / "runner.json"

    @property
    def environment(self) -> Path:
        """The variables that decide, and this machine."""
        return self.root / "environment.json"

    @property
    def driver_log(self) -> Path:
        """What the driver wrote (CUDA_LOG_FILE)."""
        return self.root / run_files.DRIVER_LOG

    def driver_log_parts(self) -> list[Path]:
        """Give the files of single processes that are to become `driver_log`."""
        return sorted(self.root.glob(f"{self.driver_log.name}[._-]*"))

    @property
    def outcome(self) -> Path:
        """The answer, as ``--json`` prints it."""
        return self.root / run_files.OUTCOME

    @property
    def keeper_log(self) -> Path:
        """Faults of the process that keeps the engine; removed when empty."""
        return self.root / "keeper.log"

    @property
    def caches(self) -> Path:
        """Compile caches of this run; removed at its end."""
        return self.root / "caches"

    @property
    def overlay(self) -> Path:
        """The tree that ``--source`` runs."""
        return self.root / "overlay"

    @property
    def trace(self) -> Path:
        """What the tracer wrote, a file for each process; removed when empty."""
        return self.root / run_files.TRACE

    @property
    def plugin(self) -> Path:
        """The tracer as the engine loads it; removed at its end."""
        return self.root / "plugin"

    def artifacts(self) -> dict[str, str]:
        """Give what is there, by name; the folder itself first."""
        named = {
            "folder": self.root,
            "log": self.log,
            "timing": self.timing,
            "after_end": self.after,
            "json": self.outcome,
            "spec": self.spec,
            "environment": self.environment,
            "runner": self.report,
            "driver_log": self.driver_log,
            "trace": self.trace,
            "overlay": self.overlay,
        }
        return {name: str(path) for name, path in named.items() if _worth_naming(path)}


def _worth_naming(path: Path) -> bool:
    return path.is_dir() or (path.is_file() and path.stat().st_size > 0)


@contextmanager
def run_folder(out: Path | None, model: str) -> Iterator[RunFolder]:
    """Give the folder of a run, made and locked; what an earlier run left there is removed.

    A folder that was made for a run which could not even be tried goes again.

    Raises:
        CannotDo: it cannot be made or written, another run writes there, or it holds files of
            somebody else's under the names that a run would give.
    """
    root = _place(out, model)
    with writing(root):
        fresh = not root.exists()
        root.mkdir(parents=True, exist_ok=True)
    folder = RunFolder(root)
    _refuse_strangers(folder)
    with writing(root):
        lock = os.open(root / _MARK, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        _lock(lock, root)
        _clear(folder)
        yield folder
    except CapdoctorError:
        if fresh:
            _remove_if_unused(root)
        raise
    finally:
        os.close(lock)


def _place(out: Path | None, model: str) -> Path:
    if out is None:
        return runs_folder() / _default_name(model)
    try:
        return out.expanduser().absolute()
    except (OSError, RuntimeError) as exc:  # the current folder is gone, or "~" is nowhere
        raise CannotDo(f"--out {out} cannot be resolved: {exc}", "give an absolute path") from exc


def _refuse_strangers(folder: RunFolder) -> None:
    with writing(folder.root):
        if (folder.root / _MARK).exists():
            return
        found = [path.name for path in _own_paths(folder) if os.path.lexists(path)]
    if found:
        raise CannotDo(
            f"{folder.root} holds {found[0]}, which no run of capdoctor's wrote",
            "choose another --out: nothing of yours is overwritten",
        )


def _lock(descriptor: int, root: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        raise CannotDo(f"another run writes into {root}", "choose another --out") from exc
    except OSError:
        return  # a file system without locks


def _clear(folder: RunFolder) -> None:
    with writing(folder.root):
        for path in _own_paths(folder):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _own_paths(folder: RunFolder) -> list[Path]:
    """Give every path that a run may write, whether it is there or not."""
    named = [
        folder.log,
        folder.timing,
        folder.after,
        folder.spec,
        folder.report,
        folder.environment,
        folder.outcome,
        folder.keeper_log,
        folder.caches,
        folder.overlay,
        folder.trace,
        folder.plugin,
        folder.root / "shrunk",
        *(folder.root / name for name in ("overlay.json", "embedded.json", "scenario.json")),
    ]
    return [*named, folder.driver_log, *folder.driver_log_parts()]


def _remove_if_unused(root: Path) -> None:
    try:
        if [path.name for path in root.iterdir()] == [_MARK]:
            shutil.rmtree(root)
    except OSError:
        return


def _default_name(model: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", Path(model).name).strip("-")[:40]
    return f"{stamp}-{slug or 'model'}-{secrets.token_hex(2)}"


def write_json(path: Path, value: Json) -> None:
    """Write a JSON file whole or not at all.

    Raises:
        CannotDo: the disk is full or the folder cannot be written.
    """
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all; raises as `write_json` does."""
    partial = path.with_name(path.name + ".part")
    with writing(path):
        try:
            partial.write_text(text, encoding="utf-8", errors="surrogateescape")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the disk into a sentence.

    Raises:
        CannotDo: with the reason, instead of any OSError.
    """
    try:
        yield
    except OSError as exc:
        reason = _SENTENCES.get(exc.errno or 0, exc.strerror or str(exc))
        raise CannotDo(f"{path} cannot be written: {reason}", "choose another --out") from exc
