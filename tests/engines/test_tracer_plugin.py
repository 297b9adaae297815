"""The folder by which an engine in another Python loads the tracer."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from capdoctor.engines import tracer_plugin
from capdoctor.engines.tracer_plugin import PLUGIN, lay_out, unusable
from capdoctor.errors import CannotDo

FIND = """
import json, sys
from importlib.metadata import entry_points, version
found = [e for e in entry_points().select(group="vllm.general_plugins") if e.name == sys.argv[1]]
[entry.load()() for entry in found]
ours = [name for name in sys.modules if name.split(".")[0] in ("capdoctor", "torch")]
print(json.dumps([[e.value for e in found], version(sys.argv[1]), ours]))
"""


def run_in_child(folder: Path, traces: Path) -> list[object]:
    """Load the plug-in as vLLM does, in a Python that has it on PYTHONPATH and nothing of ours."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(folder),
        "CAPDOCTOR_TRACE_DIR": str(traces),
    }
    done = subprocess.run(
        [sys.executable, "-c", FIND, PLUGIN],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


def test_another_python_finds_it_as_an_installed_plugin(tmp_path: Path) -> None:
    lay_out(tmp_path / "plugin")
    values, version, ours = run_in_child(tmp_path / "plugin", tmp_path / "trace")
    assert values == ["capdoctor_tracer.plugin:register"]
    assert version
    assert ours == []


def test_an_older_python_can_read_all_of_it(tmp_path: Path) -> None:
    lay_out(tmp_path)
    files = list((tmp_path / PLUGIN).rglob("*.py"))
    assert files
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
        for node in ast.walk(tree):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                imported.append(node.module or "")
            assert not any(name.split(".")[0] == "capdoctor" for name in imported), file


def test_it_is_copied_out_of_an_archive_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "capdoctor.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("tracer/inside/__init__.py", "")
        file.writestr("tracer/inside/plugin.py", "def register(): ...\n")
        file.writestr("tracer/inside/deep/part.py", "x = 1\n")
        file.writestr("tracer/inside/__pycache__/plugin.cpython-311.pyc", "no")
    root = zipfile.Path(archive, "tracer/")
    monkeypatch.setattr(tracer_plugin, "files", lambda _: root)
    lay_out(tmp_path / "plugin")
    copied = tmp_path / "plugin" / PLUGIN
    names = {path.relative_to(copied).as_posix() for path in copied.rglob("*") if path.is_file()}
    assert names == {"__init__.py", "plugin.py", "deep/part.py"}


def test_it_can_be_laid_out_again_over_itself(tmp_path: Path) -> None:
    lay_out(tmp_path)
    lay_out(tmp_path)
    assert len(list(tmp_path.glob("*.dist-info"))) == 1


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotDo, match="cannot be written"):
        lay_out(tmp_path / "file")


def test_a_folder_that_the_path_cannot_name_is_told() -> None:
    assert unusable(Path("/runs/plain/plugin")) is None
    assert "PYTHONPATH" in (unusable(Path("/runs/a:b/plugin")) or "")
