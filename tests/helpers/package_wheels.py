"""Real packages from the index for tests: the Python files of one wheel, as pip would lay them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("CAPDOCTOR_TEST_WHEELS", Path(tempfile.gettempdir()) / "wheels"))


def wheel(name: str, version: str) -> Path:
    """Give the wheel ``name==version``, from the cache or the package index; skip without."""
    stem = name.replace("-", "_")
    found = sorted(CACHE.glob(f"{stem}-{version}-*.whl"))
    if not found:
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        done = subprocess.run(
            [*command, "--dest", str(CACHE), f"{name}=={version}"],
            capture_output=True,
            text=True,
            check=False,
        )
        found = sorted(CACHE.glob(f"{stem}-{version}-*.whl"))
        if not found:
            pytest.skip(f"{name} {version} cannot be fetched: {done.stderr.strip()[-200:]}")
    return found[0]


def unpack(name: str, version: str, into: Path, only: str = "") -> Path:
    """Lay the Python files and the metadata of a wheel out in ``into``; give ``into``.

    ``only`` is a pattern for the names of Python files to take (all by default). RECORD lists
    the whole wheel, as after an install.
    """
    wanted = re.compile(only or r".*")
    with zipfile.ZipFile(wheel(name, version)) as archive:
        for member in archive.namelist():
            is_code = member.endswith(".py") and wanted.search(member)
            if is_code or ".dist-info/" in member:
                archive.extract(member, into)
    return into
