"""Another version's Python over an installed package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.overlay import build_overlay, plan_overlay
from capdoctor.errors import CannotDo

NAMES = st.sampled_from(
    ["__init__.py", "a.py", "b/c.py", "_version.py", "third_party/x.py", "vllm_flash_attn/f.py"]
)
TREES = st.dictionaries(NAMES, st.binary(max_size=2), max_size=6)


@given(TREES, TREES, st.none() | st.lists(NAMES))
def test_every_python_file_is_linked_written_or_removed(
    installed: dict[str, bytes], source: dict[str, bytes], built: list[str] | None
) -> None:
    plan = plan_overlay(installed, source, built)
    everything = (installed.keys() | source.keys()) - {"_version.py"}
    assert plan.link | plan.write | plan.remove == everything
    assert len(plan.link) + len(plan.write) + len(plan.remove) == len(everything)
    assert plan.write <= source.keys()
    assert not plan.remove & source.keys()
    assert all(installed[path] == source[path] for path in plan.link & source.keys())


def test_what_the_build_made_stays_although_no_commit_has_it() -> None:
    installed = {"vllm_flash_attn/interface.py": b"", "gone.py": b"", "grpc/x_pb2.py": b""}
    plan = plan_overlay(installed, {})
    assert plan.remove == {"gone.py"}
    assert plan.link == {"vllm_flash_attn/interface.py", "grpc/x_pb2.py"}


def test_what_was_tracked_when_it_was_built_tells_generated_files_surely() -> None:
    installed = {"third_party/pynvml.py": b"", "made_by_build.py": b""}
    plan = plan_overlay(installed, {}, ["third_party/pynvml.py"])
    assert plan.remove == {"third_party/pynvml.py"}
    assert plan.link == {"made_by_build.py"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Lay out an installed package with a compiled part, data and bytecode."""
    root = tmp_path / "site/vllm"
    (root / "v1").mkdir(parents=True)
    (root / "__init__.py").write_text(
        "from vllm import v1, same\nfrom vllm._version import version\n"
    )
    (root / "same.py").write_text("ORIGIN = __file__\n")
    (root / "v1/__init__.py").write_text("VALUE = 'installed'\n")
    (root / "v1/dropped.py").write_text("")
    (root / "_C.abi3.so").write_bytes(b"\x7fELF")
    (root / "v1/table.json").write_text("{}")
    (root / "_version.py").write_text("version = '0.32.0'\n")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(root)], check=True)
    return root


def make_checkout(folder: Path) -> Path:
    tree = folder / "checkout"
    (tree / "vllm/v1").mkdir(parents=True)
    text = "from vllm import v1, same\nfrom vllm._version import version\n"
    (tree / "vllm/__init__.py").write_text(text)
    (tree / "vllm/same.py").write_text("ORIGIN = __file__\n")
    (tree / "vllm/v1/__init__.py").write_text("VALUE = 'other'\n")
    (tree / "vllm/v1/new.py").write_text("")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    (tree / "vllm/untracked.py").write_text("")
    return tree


def test_the_overlay_runs_the_other_python_over_the_same_binaries(
    package: Path, tmp_path: Path
) -> None:
    info = build_overlay(
        package, make_checkout(tmp_path), tmp_path / "over", commit="ab" * 20, version="0.32.0"
    )
    assert info.written == ("v1/__init__.py", "v1/new.py")
    assert info.removed == ("v1/dropped.py",)
    assert (info.package / "_C.abi3.so").resolve() == package / "_C.abi3.so"
    assert (info.package / "v1/table.json").is_symlink()
    assert not (info.package / "untracked.py").exists()
    code = "import vllm; print(vllm.__file__, vllm.v1.VALUE, vllm.same.ORIGIN, vllm.version)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(info.root)},
        capture_output=True,
        text=True,
        check=True,
    )
    file, value, origin, version = done.stdout.split()
    assert file == str(info.package / "__init__.py")
    assert value == "other"
    assert origin == str(info.package / "same.py")
    assert version == "0.32.0+gababababa.overlay"
    assert "installed" in (package / "v1/__init__.py").read_text()


def test_a_folder_in_which_nothing_differs_is_one_link(package: Path, tmp_path: Path) -> None:
    texts = {
        path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")
    }
    changed = {**texts, "__init__.py": b"from vllm import v1\n"}
    info = build_overlay(package, changed, tmp_path / "over")
    assert (info.package / "v1").is_symlink()
    assert not info.package.is_symlink()
    new_folder = {**texts, "v1/deep/new.py": b""}
    info = build_overlay(package, new_folder, tmp_path / "over")
    assert not (info.package / "v1").is_symlink()
    assert (info.package / "v1/table.json").is_symlink()
    assert (info.package / "v1/deep/new.py").exists()


def test_bytecode_of_equal_files_is_used_again(package: Path, tmp_path: Path) -> None:
    info = build_overlay(package, make_checkout(tmp_path), tmp_path / "over")
    cached = [path.name.split(".")[0] for path in (info.package / "__pycache__").iterdir()]
    assert sorted(cached) == ["__init__", "same"]
    assert not (info.package / "v1/__pycache__").exists()


def test_texts_by_path_do_as_well_as_a_checkout(package: Path, tmp_path: Path) -> None:
    info = build_overlay(package, {"__init__.py": b"X = 1\n"}, tmp_path / "over", commit=None)
    assert info.written == ("__init__.py",)
    assert set(info.removed) == {"same.py", "v1/__init__.py", "v1/dropped.py"}


def test_an_earlier_overlay_is_replaced(package: Path, tmp_path: Path) -> None:
    tree = make_checkout(tmp_path)
    build_overlay(package, tree, tmp_path / "over")
    (tmp_path / "over/vllm/stale.py").write_text("")
    build_overlay(package, tree, tmp_path / "over")
    assert not (tmp_path / "over/vllm/stale.py").exists()


def test_a_source_without_the_package_is_one_sentence(package: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CannotDo, match="holds no tracked Python package vllm"):
        build_overlay(package, tmp_path / "empty", tmp_path / "over")
    assert not (tmp_path / "over").exists()
