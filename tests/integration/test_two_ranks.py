"""The real vLLM CPU engine on two ranks: a clean start, a crash in both, a kill in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from capdoctor.engines.pythons import find_python
from capdoctor.engines.start import run
from capdoctor.model import EngineSpec, Outcome
from tests.engines.support import marked_processes, wait_until

pytestmark = pytest.mark.engine

BREAK = """
        sizes = {"decode": 1}
        sizes["prefill"]
"""


@pytest.fixture
def spec(spec: EngineSpec, monkeypatch: pytest.MonkeyPatch) -> EngineSpec:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("two ranks of the CPU engine need two cores")
    # One NUMA node is not enough for two ranks unless they are told their cores.
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1")
    return replace(spec, tensor_parallel_size=2)


def broken_tree(python: Path, folder: Path) -> Path:
    """Give a copy of the installed package whose workers cannot warm up."""
    installed = find_python(python).vllm
    assert installed is not None
    ignore = shutil.ignore_patterns("*.so", "__pycache__", "*.json", "_version.py")
    shutil.copytree(installed.package, folder / "vllm", ignore=ignore)
    path = folder / "vllm/v1/worker/cpu_worker.py"
    head, found, tail = path.read_text().partition("    def compile_or_warm_up_model(")
    assert found
    signature, colon, body = tail.partition(":\n")
    path.write_text(head + found + signature + colon + BREAK + body)
    return folder


def test_two_ranks_start_and_leave_nothing(
    spec: EngineSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDOCTOR_TEST_MARK", "two-ranks-clean")
    answer = run(spec)
    assert answer.outcome is Outcome.STARTED, answer.reason
    assert {"Worker_TP0", "Worker_TP1"} <= {process.name for process in answer.processes}
    assert answer.gpu_memory is None  # an engine without a GPU
    assert marked_processes("CAPDOCTOR_TEST_MARK=two-ranks-clean") == []


def test_a_crash_in_both_ranks_is_one_diagnosis(spec: EngineSpec, tmp_path: Path) -> None:
    assert spec.python is not None
    tree = broken_tree(spec.python, tmp_path / "tree")
    answer = run(replace(spec, source=tree))
    assert answer.outcome is Outcome.CRASHED, answer.reason
    found = answer.diagnosis
    assert found is not None
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("KeyError", "'prefill'")
    ranks = found.extra["ranks"]
    assert isinstance(ranks, dict)
    assert ranks["raised_it"] == [0, 1]
    assert found.process.rank in (0, 1)


def test_a_kill_in_the_middle_leaves_no_rank_behind(spec: EngineSpec) -> None:
    """SIGKILL of capdoctor itself, once both ranks are there: the keeper ends them."""
    mark = f"two-ranks-kill-{os.getpid()}"
    pairs = [f"{key}={json.dumps(value)}" for key, value in spec.engine_args.items()]
    options = [word for pair in pairs for word in ("--engine-arg", pair)]
    line = ["repro", "--model", spec.model, "--python", spec.python, "-tp", "2", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "capdoctor", *map(str, line), "--out", str(spec.out)],
        env={**os.environ, "CAPDOCTOR_TEST_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert wait_until(lambda: _ranks_of(mark) == 2, 120)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert wait_until(lambda: not marked_processes(f"CAPDOCTOR_TEST_MARK={mark}"), 20)


def _ranks_of(mark: str) -> int:
    titles = []
    for pid in marked_processes(f"CAPDOCTOR_TEST_MARK={mark}"):
        try:
            titles.append(" ".join(psutil.Process(pid).cmdline()))
        except psutil.Error:
            continue
    return sum("VLLM::Worker" in title for title in titles)
