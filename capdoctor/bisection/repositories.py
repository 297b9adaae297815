"""Where the repository is that ``--repo`` means."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlparse

from capdoctor.bisection.history.gitcall import git
from capdoctor.errors import CannotDo
from capdoctor.folders import cache_folder

KNOWN = {
    "vllm": ("https://github.com/vllm-project/vllm.git", ("vllm",)),
    "aiter": ("https://github.com/ROCm/aiter.git", ("aiter", "amd-aiter")),
}
_EDITABLE = """
import importlib.metadata as m, sys
for name in sys.argv[1:]:
    try:
        print(m.distribution(name).read_text("direct_url.json") or "")
        break
    except m.PackageNotFoundError:
        pass
"""


def find_repository(repo: str, python: Path | None) -> Path:
    """Return the folder: as given, from the environment, the editable checkout, or a clone.

    Raises:
        CannotDo: the folder is missing, or the clone cannot be made.
    """
    if repo not in KNOWN or Path(repo).is_dir():
        return _folder(Path(repo), "--repo")
    variable = f"CAPDOCTOR_REPO_{repo.upper()}"
    given = os.environ.get(variable)
    if given:
        return _folder(Path(given), variable)
    return _editable(python, KNOWN[repo][1]) or _cached_clone(repo)


def _folder(path: Path, source: str) -> Path:
    path = path.expanduser()
    if not path.is_dir():
        raise CannotDo(
            f"{path} ({source}) is not a folder", "give the folder of a clone, or vllm or aiter"
        )
    return path.resolve()


def _editable(python: Path | None, names: tuple[str, ...]) -> Path | None:
    """Return the checkout that a Python has installed in editable mode; reads metadata only."""
    if python is None:
        return None
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _EDITABLE, *names],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        told = json.loads(done.stdout or "{}")
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if not told.get("dir_info", {}).get("editable"):
        return None
    folder = Path(unquote(urlparse(told["url"]).path))
    return folder if (folder / ".git").exists() else None


def _cached_clone(repo: str) -> Path:
    folder = cache_folder() / "repositories" / repo
    if (folder / "HEAD").exists():
        git(folder, "fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/heads/*")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f"{repo}.{os.getpid()}")
    # Blobs come when a commit is checked out; trees and commits are all that planning needs.
    url = KNOWN[repo][0]
    git(folder.parent, "clone", "--quiet", "--bare", "--filter=blob:none", url, str(fresh))
    fresh.rename(folder)
    return folder
