"""The folder of a run: which files it has, and how they are written."""

from __future__ import annotations

import errno
import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from capdoctor.errors import CannotDo
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


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where the files of one run lie."""

    root: Path

    @property
    def log(self) -> Path:
        """Everything the engine printed, both streams, until it was to end."""
        return self.root / "engine.log"

    @property
    def timing(self) -> Path:
        """For each line of the log: seconds since the start, stream (``out``, ``err``)."""
        return self.root / "engine.timing.tsv"

    @property
    def after(self) -> Path:
        """What was printed after the engine was told to end; the stacks of a hung one."""
        return self.root / "after-end.log"

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
        return self.root / "driver.log"

    @property
    def outcome(self) -> Path:
        """The answer, as ``--json`` prints it."""
        return self.root / "outcome.json"

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
            "overlay": self.overlay,
        }
        return {name: str(path) for name, path in named.items() if _worth_naming(path)}


def _worth_naming(path: Path) -> bool:
    return path.is_dir() or (path.is_file() and path.stat().st_size > 0)


def make_run_folder(out: Path | None, model: str) -> RunFolder:
    """Make the folder of a run; what an earlier run of ours left there is removed.

    Raises:
        CannotDo: it cannot be made or written.
    """
    root = out.expanduser().absolute() if out else runs_folder() / _default_name(model)
    folder = RunFolder(root)
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        for path in _own_files(folder):
            path.unlink(missing_ok=True)
    return folder


def _own_files(folder: RunFolder) -> list[Path]:
    return [
        folder.log,
        folder.timing,
        folder.after,
        folder.spec,
        folder.report,
        folder.environment,
        folder.driver_log,
        folder.outcome,
        folder.keeper_log,
    ]


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
