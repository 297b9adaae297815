"""Ask a Python where it would import a package from, without importing it.

``importlib.util.find_spec`` of a top-level name runs no code of the package, and it knows wheels,
``.pth`` files, editable finders, ``.egg-link`` through ``easy-install.pth`` and system packages
because that Python's own ``site`` has set them up.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.contract import FixInfo
from capdoctor.vendored_fixes.folder_search import Place, find_in_folder, is_package

TIMEOUT = 60.0  # seconds; a cold Python on a network disk takes a few
_MARK = "capdoctor-found:"
# No syntax that an old Python lacks; the current folder is not where an engine starts.
_ASK = f"""
import sys
sys.path[:] = [p for p in sys.path if p]
import json, importlib.util
name = sys.argv[1]
try:
    spec = importlib.util.find_spec(name)
except Exception:
    spec = None
where = list(spec.submodule_search_locations or []) if spec is not None else []
print({_MARK!r} + json.dumps({{"where": where, "path": sys.path, "prefix": sys.prefix}}))
"""


def ask_python(python: Path, fix: FixInfo) -> Place | None:
    """Give where ``python`` has the fix's package; None if it has not.

    Raises:
        CannotDo: the file cannot be run as a Python.
    """
    answer = _run(python, fix)
    prefix = Path(answer["prefix"])
    for place in answer["where"]:
        folder = Path(place)
        if is_package(folder):
            how = f"what {python} imports"
            return Place(folder, how, python=python, prefix=prefix)
    for entry in answer["path"]:  # an .egg-link that nothing put on the path, say
        found = find_in_folder(Path(entry), fix) if Path(entry).is_dir() else None
        if found is not None:
            return Place(found.folder, found.how, found.version, python, prefix)
    return None


def _run(python: Path, fix: FixInfo) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [str(python.absolute()), "-c", _ASK, fix.package],
            capture_output=True,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotDo(
            f"{python} cannot be run: {error}.",
            "If it is of another system, give its site-packages folder instead.",
        ) from error
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if line.startswith(_MARK):
            answer: dict[str, Any] = json.loads(line[len(_MARK) :])
            return answer
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise CannotDo(
        f"{python} does not answer as a Python: {said[-1] if said else f'exit {done.returncode}'}.",
        "Give the Python that has the package, or the package's folder.",
    )
