"""Kill -9 at every write of apply and revert: files are old or new, the next call makes it good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.fix_cases import Case
from tests.vendored_fixes.conftest import add_metadata, write

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("kill_driver.py")
Experiment = dict[str, Any]


def run_experiments(work: Path, case: Case) -> list[Experiment]:
    """Run the driver; every experiment is one line."""
    for name, data in case.before.items():
        write(work / "site" / name, data)
    write(work / "site/vllm/__init__.py", b"")
    add_metadata(work / "site", "vllm", "vllm", "0.30.0.dev7")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(work / "state")}
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(work)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory: file systems on disk flush at every rename over a file."""
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shm, prefix="capdoctor-kill-") as folder:
        yield Path(folder)


def test_a_kill_at_any_write_leaves_old_or_new_files_and_is_made_good(
    memory_folder: Path, sparse_case: Case
) -> None:
    """One run of all experiments (some seconds), seen from every side."""
    experiments = run_experiments(memory_folder, sparse_case)
    the_experiments_cover_every_step(experiments)
    every_file_is_the_old_or_the_new_one(experiments)
    the_next_call_ends_in_its_tree(experiments)
    a_wait_loses_the_event_before_the_record_does(experiments)


def of(experiments: list[Experiment], **wanted: str) -> list[Experiment]:
    return [e for e in experiments if all(e[key] == value for key, value in wanted.items())]


def the_experiments_cover_every_step(experiments: list[Experiment]) -> None:
    killed = [e for e in experiments if e["died"]]
    assert len(of(killed, how="die_at", first="apply", then="apply")) > 30
    assert len(of(killed, how="die_at", first="revert", then="revert")) > 20
    assert len(of(killed, how="die_half_way", first="apply", then="apply")) > 8
    assert len([e for e in killed if 0 < len(e["changed"]) < 4]) > 10, "between two files"
    assert any(e["staged"] for e in killed), "some left a staged file"


def every_file_is_the_old_or_the_new_one(experiments: list[Experiment]) -> None:
    assert [e for e in experiments if e["torn"] or e["strange"]] == []


def the_next_call_ends_in_its_tree(experiments: list[Experiment]) -> None:
    applied, reverted = of(experiments, then="apply"), of(experiments, then="revert")
    assert [e for e in applied if e["end"] != "new" or e["said"] != "fixed"] == []
    assert [e for e in reverted if e["end"] != "old"] == []
    assert {e["first"] for e in applied} == {e["first"] for e in reverted} == {"apply", "revert"}


def a_wait_loses_the_event_before_the_record_does(experiments: list[Experiment]) -> None:
    """In every state in between, the recording file is changed only when the others are."""
    group = "vllm/v1/attention/backends/mla/index_group.py"
    others = {"vllm/forward_context.py", "vllm/v1/hisparse/runtime.py"}
    for experiment in experiments:
        if group in experiment["changed"]:
            assert others <= set(experiment["changed"]), experiment
