"""RECORD stays true, byte for byte where nothing changed, and pip agrees."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.targets import find_target
from capdoctor.vendored_fixes.wheel_record import owning_records, with_old_rows, with_rows
from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import record_row, snapshot

FIX = find_fix("sparse-mla")
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    min_size=1,
    max_size=12,
)


def test_only_the_row_of_a_changed_file_changes() -> None:
    record = b"a.py,sha256=old,3\r\nb.py,sha256=other,4\r\nx-1.dist-info/RECORD,,\r\n"
    changed = with_rows(record, {"a.py": b"new"})
    expected = "a.py,sha256=EVB_KIxyMzZk4gcS9ju7qeqCmEtXYNcMX9a_x36kjF4,3\r\n"
    rest = b"b.py,sha256=other,4\r\nx-1.dist-info/RECORD,,\r\n"
    assert changed.endswith(rest)
    assert changed.split(b"\r\n")[0].decode().split(",")[2] == "3"
    assert len(changed.split(b"\r\n")[0]) == len(expected) - 2


def test_a_row_without_a_hash_stays_without() -> None:
    record = b"a.py,,\na/__pycache__/a.cpython-311.pyc,,\n"
    assert with_rows(record, {"a.py": b"new"}) == record


def test_another_algorithm_stays_and_an_unknown_one_is_left_alone() -> None:
    record = b"a.py,sha512=x,1\nb.py,blake9=x,1\n"
    first, second, _ = with_rows(record, {"a.py": b"n", "b.py": b"n"}).split(b"\n")
    assert first.startswith(b"a.py,sha512=")
    assert len(first) > 90
    assert second == b"b.py,blake9=x,1"


def test_a_name_with_a_comma_is_found() -> None:
    assert b"sha256=x" not in with_rows(b'"a,b.py",sha256=x,1\n', {"a,b.py": b"n"})


@given(names=st.lists(NAMES, min_size=1, max_size=6, unique=True), data=st.data())
def test_writing_and_taking_back_gives_the_same_bytes(
    names: list[str], data: st.DataObject
) -> None:
    import csv
    import io

    out = io.StringIO()
    rows = [[name, f"sha256={index}", str(index)] for index, name in enumerate(names)]
    csv.writer(out, lineterminator="\n").writerows(rows)
    record = out.getvalue().encode()
    chosen = data.draw(st.sets(st.sampled_from(names)))
    changed = with_rows(record, dict.fromkeys(chosen, b"content"))
    assert with_old_rows(changed, record, frozenset(chosen)) == record
    assert changed.count(b"\n") == record.count(b"\n")


def test_every_record_that_lists_the_package_is_found(
    make_tree: Callable[..., Path], sparse_case: Case
) -> None:
    site = make_tree(sparse_case)
    other = site / "vllm_flash-1.dist-info" / "RECORD"
    other.parent.mkdir()
    other.write_text("vllm_flash/__init__.py,sha256=x,1\n")
    assert [path.parent.name for path in owning_records(site / "vllm")] == [
        "vllm-0.30.0.dev7.dist-info"
    ]


@pytest.fixture
def installed(tmp_path: Path, sparse_case: Case) -> tuple[Path, Path]:
    """Install a small wheel with pip; give the environment's Python and its site-packages."""
    info = "vllm-0.30.0.dev7.dist-info"
    files = {**sparse_case.before, "vllm/__init__.py": b""}
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: vllm\nVersion: 0.30.0.dev7\n"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    wheel = tmp_path / "vllm-0.30.0.dev7-py3-none-any.whl"
    for name, data in files.items():
        path = tmp_path / "wheel" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    rows = [record_row(tmp_path / "wheel", tmp_path / "wheel" / name) for name in files]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    pip(python, "install", "--no-index", "--no-deps", "--quiet", str(wheel))
    return python, next((tmp_path / "env" / "lib").glob("python3*/site-packages"))


def pip(python: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def verify(site: Path) -> list[str]:
    """Give the files whose bytes are not what RECORD says."""
    wrong = []
    for line in next(site.glob("vllm*.dist-info/RECORD")).read_text().splitlines():
        name, digest, _ = line.rsplit(",", 2)
        if digest and record_row(site, site / name) != line:
            wrong.append(name)
    return wrong


def test_pip_still_checks_and_uninstalls_what_was_changed(installed: tuple[Path, Path]) -> None:
    python, site = installed
    target = find_target(str(python), FIX)
    before = snapshot(site / "vllm")
    assert verify(site) == []
    apply(FIX, target)
    assert snapshot(site / "vllm") != before
    assert verify(site) == []
    assert "No broken requirements" in pip(python, "check")
    pip(python, "uninstall", "--yes", "vllm")
    assert not (site / "vllm").exists()
    assert list(site.glob("vllm*")) == []


def test_revert_leaves_pip_what_it_had(installed: tuple[Path, Path]) -> None:
    python, site = installed
    record = next(site.glob("vllm*.dist-info/RECORD"))
    old = record.read_bytes()
    apply(FIX, find_target(str(python), FIX))
    revert(FIX, find_target(str(python), FIX))
    assert record.read_bytes() == old
    assert verify(site) == []
