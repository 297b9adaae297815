"""The child process: its exit code, and a log that is read like vLLM's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor.engines import embedded
from capdoctor.model import EngineSpec

RECORD = re.compile(
    r"\(EngineCore pid=\d+\) (INFO|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[\w+\.py:\d+\] "
)


def _run(model: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = embedded.command(EngineSpec("embedded", model), folder)
    return subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
        env={**os.environ, **variables},
    )


def test_a_crash_ends_with_1_and_a_record_of_its_traceback(tmp_path: Path) -> None:
    done = _run("demo/sparse-mla", tmp_path)
    assert done.returncode == embedded.EXIT_CRASHED
    assert done.stderr == ""
    failed = done.stdout[done.stdout.index("EngineCore failed to start.") :]
    assert "in profile_cudagraph_memory" in failed
    assert 'File "demo/sparse_mla.py", line' in failed
    assert "torch.AcceleratorError: CUDA error: invalid argument" in failed
    assert all(RECORD.match(line) for line in failed.splitlines()[1:] if line)


def test_a_start_ends_with_0_and_its_stages_in_order(tmp_path: Path) -> None:
    done = _run("demo/clean", tmp_path)
    assert done.returncode == 0
    marks = [
        "non-default args: ", "Initializing a V1 LLM engine (embedded engine, virtual device",
        "world_size=1 rank=0", "Loading model from scratch...", "Model loading took ",
        "Initial profiling/warmup run took", "Breakable CUDA graph enabled (1 eager breaks)",
        "Capturing CUDA graphs (PIECEWISE):   0%", "Capturing CUDA graphs (FULL): 100%",
        "Graph capturing finished in", "Available KV cache memory: ", "GPU KV cache size: ",
        "JIT kernel warmup starting.", "JIT kernel warmup finished in",
        "Capturing CUDA graphs (PIECEWISE):   0%", "Graph capturing finished in", "init engine (",
    ]  # fmt: skip
    position = 0
    for mark in marks:
        position = done.stdout.index(mark, position) + 1


@pytest.mark.parametrize("text", ["", "import nonesuch_package", "def build(): ..."])
def test_a_setup_failure_ends_with_3_and_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "own.py"
    file.write_text(text, encoding="utf-8")
    done = _run(str(file), tmp_path)
    assert done.returncode == embedded.EXIT_SETUP_FAILED
    last = done.stdout.splitlines()[-1]
    assert last.startswith(embedded.SETUP_FAILED)
    assert "Traceback" not in done.stdout + done.stderr


_OWN = """
import atexit, sys, threading, time, torch
{top}

def build():
    {build}
    return torch.nn.Identity()

def inputs(batch):
    return (torch.ones(batch, device="cuda"),)
"""


@pytest.mark.parametrize(
    ("top", "build", "code"),
    [
        ("threading.Thread(target=time.sleep, args=(300,)).start()", "pass", 0),
        ("threading.Thread(target=time.sleep, args=(300,)).start()", "raise ValueError", 1),
        ("threading.Thread(target=time.sleep, args=(300,)).start(); 1 / 0", "pass", 3),
        ("atexit.register(print, 'bye')", "pass", 0),
        ("atexit.register(print, 'bye'); 1 / 0", "pass", 3),
        ("pass", "sys.exit(0)", 1),
        ("pass", "sys.stderr.close(); raise ValueError", 1),
    ],
)
def test_threads_exits_and_closed_streams_of_a_model_do_not_change_the_answer(
    tmp_path: Path, top: str, build: str, code: int
) -> None:
    file = tmp_path / "own.py"
    file.write_text(_OWN.format(top=top, build=build), encoding="utf-8")
    done = _run(str(file), tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    if code == embedded.EXIT_SETUP_FAILED:
        assert done.stdout.splitlines()[-1].startswith(embedded.SETUP_FAILED)


def test_a_locale_without_the_bars_character_changes_nothing(tmp_path: Path) -> None:
    done = _run("demo/clean", tmp_path, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert "100%|██████████|" in done.stdout


def test_the_child_imports_nothing_of_process_control() -> None:
    code = (
        "import sys, capdoctor.engines.embedded.main\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('psutil', 'torch', 'ahocorasick_rs')"
        " or m.startswith(('capdoctor.logs', 'capdoctor.engines.start', 'capdoctor.report'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
