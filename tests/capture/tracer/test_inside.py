"""The half that runs inside other Pythons: what it may use, and how it starts there."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor.capture.tracer import TRACER_PACKAGE, read_trace

FILES = sorted(TRACER_PACKAGE.glob("*.py"))


@pytest.fixture
def plug_in(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH that holds the package under its own name."""
    shutil.copytree(TRACER_PACKAGE, tmp_path / "path" / "capdoctor_tracer")
    return tmp_path / "path"


def python(code: str, plug_in: Path, trace: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(plug_in)}
    environment.pop("CAPDOCTOR_TRACE_DIR", None)
    if trace is not None:
        environment["CAPDOCTOR_TRACE_DIR"] = str(trace)
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_keeps_to_the_oldest_syntax(file: Path) -> None:
    ast.parse(file.read_text("utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_imports_the_standard_library_torch_and_itself(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        for name in names:
            assert name.partition(".")[0] in {*sys.stdlib_module_names, "torch"}


def test_registering_imports_no_torch_and_touches_no_device(plug_in: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom capdoctor_tracer import plugin\nplugin.register()\n"
        "assert 'torch' not in sys.modules\nimport torch\n"
        "assert torch.cuda.CUDAGraph.capture_begin.__code__.co_filename.endswith('methods.py')\n"
        "assert not torch.cuda.is_initialized()\nplugin.register()\n"
        "import importlib.util; assert importlib.util.find_spec('torch').loader is not None\n"
    )
    ran = python(code, plug_in, tmp_path / "trace")
    assert (ran.returncode, ran.stderr) == (0, "")
    trace = read_trace(tmp_path / "trace")
    assert trace is not None
    assert (trace.processes, trace.offences, trace.faults) == (1, (), ())


def test_without_the_variable_nothing_happens(plug_in: Path, tmp_path: Path) -> None:
    code = (
        "from capdoctor_tracer import plugin\nplugin.register()\nimport torch\n"
        "assert torch.cuda.CUDAGraph.capture_begin.__code__.co_filename.endswith('graphs.py')\n"
    )
    ran = python(code, plug_in, None)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(tmp_path.glob("**/trace-*")) == []


@pytest.mark.parametrize("first", ["", "import torch\n"])
def test_a_folder_that_cannot_be_made_breaks_no_start(
    first: str, plug_in: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    code = f"{first}from capdoctor_tracer import plugin\nplugin.register()\nimport torch\nprint(1)"
    ran = python(code, plug_in, tmp_path / "file" / "trace")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")


def test_a_torch_that_cannot_be_traced_breaks_no_start(plug_in: Path, tmp_path: Path) -> None:
    code = (
        "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n"
        "from capdoctor_tracer import plugin\nplugin.register()\nprint(1)"
    )
    ran = python(code, plug_in, tmp_path / "trace")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")
    trace = read_trace(tmp_path / "trace")
    assert trace is not None
    assert len(trace.faults) == 1


def test_a_forked_child_writes_a_file_of_its_own(tmp_path: Path) -> None:
    code = (
        "import os\nfrom capdoctor_tracer.journal import Journal\n"
        f"journal = Journal({str(tmp_path / 'trace')!r})\njournal.write('captures', count=1)\n"
        "if os.fork() == 0:\n    journal.write('captures', count=2)\n    os._exit(0)\n"
        "os.wait()\njournal.write('captures', count=3)\n"
    )
    shutil.copytree(TRACER_PACKAGE, tmp_path / "capdoctor_tracer")
    ran = python(code, tmp_path, None)
    assert (ran.returncode, ran.stderr) == (0, "")
    counts = sorted(
        [json.loads(line).get("count") for line in file.read_text().splitlines()][1:]
        for file in (tmp_path / "trace").iterdir()
    )
    assert counts == [[1, 3], [2]]


def test_a_process_that_is_killed_loses_no_line(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom capdoctor_tracer.journal import Journal\n"
        f"Journal({str(tmp_path / 'trace')!r}).write('captures', count=7)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    shutil.copytree(TRACER_PACKAGE, tmp_path / "capdoctor_tracer")
    python(code, tmp_path, None)
    trace = read_trace(tmp_path / "trace")
    assert trace is not None
    assert trace.captures == 7


@pytest.mark.engine
def test_the_real_engine_loads_it_and_stays_off_the_device(
    plug_in: Path, tmp_path: Path, vllm_python: Path
) -> None:
    about = plug_in / "capdoctor_tracer-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: capdoctor_tracer\nVersion: 0\n")
    (about / "entry_points.txt").write_text(
        "[vllm.general_plugins]\ncapdoctor_tracer = capdoctor_tracer.plugin:register\n"
    )
    code = (
        "from vllm.plugins import load_general_plugins\nload_general_plugins()\nimport torch\n"
        "print(torch.cuda.CUDAGraph.capture_begin.__code__.co_filename)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(plug_in), "VLLM_PLUGINS": "capdoctor_tracer"}
    environment["CAPDOCTOR_TRACE_DIR"] = str(tmp_path / "trace")
    ran = subprocess.run(
        [str(vllm_python), "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip().endswith("capdoctor_tracer/methods.py")
