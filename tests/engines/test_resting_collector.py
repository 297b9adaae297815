"""The collector of cyclic garbage rests while the runner imports vLLM, and at no other time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.in_target import start_vllm

# A vLLM whose parts write down how they found the collector: whether it works, and what is exempt.
NOTE = "import gc\nNOTE = gc.isenabled(), gc.get_freeze_count()\n"
INIT = """
import gc, json, os
from vllm import found
class Loop: pass
class LLM:
    def __init__(self, model, **kwargs):
        from vllm.engine import arg_utils
        now = gc.isenabled(), gc.get_freeze_count()
        loop = Loop()
        loop.myself = loop
        del loop
        notes = {"import": found.NOTE, "arguments": arg_utils.NOTE, "engine": now}
        notes["garbage"] = gc.collect()
        notes["thresholds"] = gc.get_threshold()
        with open(os.environ["SAW"], "w") as file:
            json.dump(notes, file)
__version__ = "0.33.0"
"""
ARGS = """
import dataclasses
@dataclasses.dataclass
class EngineArgs:
    model: str = "m"
"""
PLATFORM = "class P:\n    def is_cpu(self): return False\ncurrent_platform = P()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with that vLLM in it."""
    package = tmp_path / "vllm"
    (package / "engine").mkdir(parents=True)
    (package / "__init__.py").write_text(INIT)
    (package / "found.py").write_text(NOTE)
    (package / "engine/__init__.py").touch()
    (package / "engine/arg_utils.py").write_text(NOTE + ARGS)
    (package / "platforms.py").write_text(PLATFORM)
    return tmp_path


def start(folder: Path, spec: dict[str, Any], **variables: str) -> tuple[int, dict[str, Any]]:
    """Run the runner; give its exit status and its report."""
    files = folder / "spec.json", folder / "report.json"
    files[0].write_text(json.dumps({"model": "m", **spec}))
    done = subprocess.run(
        [sys.executable, start_vllm.__file__, *map(str, files)],
        env={"PYTHONPATH": str(folder), "SAW": str(folder / "saw.json"), **variables},
        capture_output=True,
        check=False,
    )
    return done.returncode, json.loads(files[1].read_text())


def saw(folder: Path) -> dict[str, Any]:
    notes: dict[str, Any] = json.loads((folder / "saw.json").read_text())
    return notes


def test_it_rests_for_the_imports_and_works_for_the_engine(folder: Path) -> None:
    status, report = start(folder, {})
    notes = saw(folder)
    assert status == 0
    assert notes["import"] == notes["arguments"] == [False, 0]
    works, exempt = notes["engine"]
    assert works
    assert exempt > 0
    assert start_vllm.RESTED in report["lean"]


def test_what_the_engine_makes_is_collected_as_ever(folder: Path) -> None:
    start(folder, {})
    resting = saw(folder)
    start(folder, {}, **{start_vllm.GC_SWITCH: "1"})
    assert resting["garbage"] >= 2  # the loop and its namespace
    assert saw(folder)["thresholds"] == resting["thresholds"]


def test_the_user_can_let_it_run(folder: Path) -> None:
    _, report = start(folder, {}, **{start_vllm.GC_SWITCH: "1"})
    notes = saw(folder)
    assert notes["import"] == notes["arguments"] == notes["engine"] == [True, 0]
    assert start_vllm.RESTED not in report["lean"]


def test_what_is_refused_is_refused_as_ever(folder: Path) -> None:
    status, report = start(folder, {"engine_args": {"no_such_argument": 1}})
    assert (status, report["step"]) == (start_vllm.REFUSED, "refused")
    assert "no_such_argument" in report["reason"]
