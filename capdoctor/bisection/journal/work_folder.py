"""Where a bisection keeps its journal, its private repository, worktrees and run logs."""

from __future__ import annotations

import re
import time
from pathlib import Path

from capdoctor.errors import CannotDo
from capdoctor.folders import state_folder

JOURNAL = "journal.jsonl"


def bisections_folder() -> Path:
    """Return the folder that holds all bisections of this user."""
    return state_folder() / "bisect"


def new_work_folder(name: str) -> Path:
    """Make a folder for a new bisection, named after what it bisects and when.

    Raises:
        CannotDo: it cannot be made.
    """
    stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:40]}"
    parent = bisections_folder()
    for number in range(1000):
        folder = parent / (stem if not number else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise CannotDo(
                f"{folder} cannot be made: {error.strerror}", "set XDG_STATE_HOME to another disk"
            ) from error
        return folder
    raise CannotDo(f"{parent} is full of bisections of this very second")


def known_work_folders() -> list[Path]:
    """Return the folders of this user's bisections, the latest first."""
    found = list(bisections_folder().glob(f"*/{JOURNAL}"))
    return [path.parent for path in sorted(found, key=lambda path: -path.stat().st_mtime)]


def find_work_folder(given: Path | None) -> Path:
    """Return the folder that is meant: the given one, by path or by name, or the latest.

    Raises:
        CannotDo: there is none.
    """
    if given is None:
        folders = known_work_folders()
        if not folders:
            raise CannotDo("there is no bisection to go on with", "start one: capdoctor bisect")
        return folders[0]
    for folder in (Path.cwd() / given.expanduser(), bisections_folder() / given):
        if (folder / JOURNAL).exists():
            return folder
    raise CannotDo(
        f"{given} holds no bisection", "capdoctor bisect status names the latest work folder"
    )
