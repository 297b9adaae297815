"""Ask git whether a file differs from what is committed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from capdoctor.errors import CannotDo

# A stranger's checkout may name programs to run in its own configuration.
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*")


def changed_files(paths: list[Path]) -> list[Path]:
    """Give those of ``paths`` that are tracked by git and differ from the last commit.

    Raises:
        CannotDo: a file lies in a checkout, but git cannot be asked.
    """
    return [path for path in paths if checkout_of(path) and _differs(path)]


def checkout_of(path: Path) -> Path | None:
    """Give the checkout that ``path`` lies in, if there is one."""
    return next((folder for folder in path.parents if (folder / ".git").exists()), None)


def _differs(path: Path) -> bool:
    command = ["git", *_SAFE, "status", "--porcelain", "--untracked-files=no", "--", path.name]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        answer = subprocess.run(
            command,
            cwd=path.parent,
            env={**environment, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            capture_output=True,
            check=True,
            timeout=60,
        )
    except FileNotFoundError as error:
        raise CannotDo(
            f"{path} lies in a git checkout, but there is no git to ask about local changes.",
            "Install git, or say --allow-dirty.",
        ) from error
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = (getattr(error, "stderr", b"") or b"").decode(errors="replace").strip()
        raise CannotDo(
            f"git cannot say whether {path} has local changes: {said or error}.",
            "Repair the checkout, or say --allow-dirty.",
        ) from error
    return bool(answer.stdout.strip())
