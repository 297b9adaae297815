"""Trees and packages that the tests of this room share."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor import vendored_fixes
from tests.helpers.fix_cases import Case, read_case

ROOMS = Path(vendored_fixes.__file__).parent
MakeTree = Callable[..., Path]


@pytest.fixture
def sparse_case() -> Case:
    """The tree of the report: three files, all of them to be changed."""
    return read_case(ROOMS / "sparse_mla" / "cases" / "both_files_no_helper.txtar")


@pytest.fixture
def fold_case() -> Case:
    """The three statements of the report."""
    return read_case(ROOMS / "fold_indptr" / "cases" / "as_reported.txtar")


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """Lay a case out as a site-packages folder with metadata, and give that folder."""

    def make(case: Case, *, record: bool = True, name: str = "site-packages") -> Path:
        site = tmp_path / name
        for path, data in case.before.items():
            write(site / path, data)
        package = next(iter(case.before)).partition("/")[0]
        write(site / package / "__init__.py", b'"""A package."""\n')
        if record:
            add_metadata(site, package, "vllm" if package == "vllm" else "amd_aiter", "0.30.0.dev7")
        return site

    return make


def write(path: Path, data: bytes) -> None:
    """Write a file and the folders that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def add_metadata(site: Path, package: str, distribution: str, version: str) -> Path:
    """Write a ``.dist-info`` as pip leaves it; give its RECORD."""
    info = site / f"{distribution}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    write(info / "METADATA", metadata.encode())
    write(info / "INSTALLER", b"pip\n")
    write(info / "WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    files = sorted(p for p in [*site.glob(f"{package}/**/*"), *info.iterdir()] if p.is_file())
    rows = [record_row(site, path) for path in files]
    rows.append(f"{info.name}/RECORD,,")
    write(info / "RECORD", "".join(f"{row}\n" for row in rows).encode())
    return info / "RECORD"


def record_row(site: Path, path: Path) -> str:
    """Give the row that RECORD must hold for a file."""
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(site).as_posix()},sha256={digest},{len(data)}"


def snapshot(folder: Path) -> dict[str, tuple[bytes | str, int]]:
    """Give every file below ``folder``: its bytes (or link target) and its mode."""
    found: dict[str, tuple[bytes | str, int]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = (str(path.readlink()), 0)
        elif path.is_file():
            found[str(path.relative_to(folder))] = (path.read_bytes(), path.stat().st_mode)
    return found


def as_nobody(top: Path, work: Callable[[], list[str]]) -> list[str]:
    """Do ``work`` in a child process that is not root, and give the lines that it gives.

    The folders on the way to ``top`` are opened for it meanwhile.
    """
    modes = {folder: folder.stat().st_mode & 0o7777 for folder in [top, *top.parents]}
    closed = [folder for folder in modes if os.geteuid() == 0 and modes[folder] & 0o005 != 0o005]
    for folder in closed:
        folder.chmod(modes[folder] | 0o055)
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(send, "\n".join(work()).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    for folder in closed:
        folder.chmod(modes[folder])
    return text.splitlines()
