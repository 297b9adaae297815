"""The child process: its exit code, and a log that is read like vLLM's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from capdoctor.engines import embedded
from capdoctor.model import EngineSpec

RECORD = re.compile(
    r"\(EngineCore pid=\d+\) (INFO|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[\w+\.py:\d+\] "
)


def _run(model: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = embedded.command(EngineSpec("embedded", model), folder)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


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
