"""The runner in the target Python has vLLM look at a model's class in a fork."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.in_target import fork_inspection, start_vllm

REGISTRY = """
import os
def _run_in_subprocess(look):
    return {"way": "vllm's own", "pid": os.getpid()}
"""
# An engine that looks at a model's class as vLLM does, and writes down what it was told.
INIT = """
import json, os
class LLM:
    def __init__(self, model, **kwargs):
        from vllm.model_executor.models import registry
        def look():
            {look}
        told = getattr(registry, "_run_in_subprocess", lambda look: None)(look)
        with open(os.environ["SAW"], "w") as file:
            json.dump({{"told": told, "front_end": os.getpid()}}, file)
__version__ = "0.33.0"
"""
ARGS = """
import dataclasses
@dataclasses.dataclass
class EngineArgs:
    model: str = "m"
"""
# A class that can be pickled in the fork, and not be found again in the front end.
LOCAL = """import sys, types
            class Here: ...
            Here.__module__, Here.__qualname__ = "here", "Here"
            sys.modules["here"] = types.SimpleNamespace(Here=Here)
            return Here"""
PLATFORM = "class P:\n    def is_cpu(self): return False\ncurrent_platform = P()\n"


def make_vllm(folder: Path, look: str, registry: str = REGISTRY) -> None:
    files = {
        "": INIT.format(look=look),
        "engine": "",
        "engine/arg_utils": ARGS,
        "platforms": PLATFORM,
        "model_executor": "",
        "model_executor/models": "",
        "model_executor/models/registry": registry,
    }
    for name, text in files.items():
        package = folder / "vllm" / name
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text(text)


def start(folder: Path, **variables: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Run the runner; give what the engine saw, the report, and what was printed."""
    spec, report, saw = (folder / name for name in ("spec.json", "report.json", "saw.json"))
    spec.write_text(json.dumps({"model": "m"}))
    done = subprocess.run(
        [sys.executable, start_vllm.__file__, str(spec), str(report)],
        env={"PYTHONPATH": str(folder), "SAW": str(saw), "PYTHONSAFEPATH": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(saw.read_text()), json.loads(report.read_text()), done.stdout + done.stderr


def test_the_class_is_looked_at_in_a_fork_and_that_is_said(tmp_path: Path) -> None:
    make_vllm(tmp_path, 'return {"way": "fork", "pid": os.getpid()}')
    saw, report, _ = start(tmp_path)
    assert saw["told"]["way"] == "fork"
    assert saw["told"]["pid"] != saw["front_end"]
    assert fork_inspection.FORKED in report["lean"]
    assert report["step"] == "ready"


def test_what_a_class_prints_stays_in_the_fork(tmp_path: Path) -> None:
    make_vllm(tmp_path, 'print("noise"); os.write(2, b"noise"); return {"way": "fork"}')
    saw, _, printed = start(tmp_path)
    assert saw["told"] == {"way": "fork"}
    assert "noise" not in printed


def test_nothing_that_a_class_does_when_imported_reaches_the_front_end(tmp_path: Path) -> None:
    """CUDA must stay untouched there: a later fork of the engine depends on it."""
    look = 'os.environ["TOUCHED"] = "1"; return {"way": "fork"}'
    after = "import os, atexit\natexit.register(lambda: print(os.environ.get('TOUCHED')))\n"
    make_vllm(tmp_path, look, after + REGISTRY)
    assert start(tmp_path)[2].split() == ["None"]  # printed once, by the front end


def test_a_large_answer_comes_through_whole(tmp_path: Path) -> None:
    make_vllm(tmp_path, 'return "x" * (1 << 21)')
    assert len(start(tmp_path)[0]["told"]) == 1 << 21


@pytest.mark.parametrize(
    "look",
    [
        'raise RuntimeError("no such class")',
        "raise SystemExit(0)",
        "raise KeyboardInterrupt",
        "os._exit(3)",
        "os._exit(0)",
        "os.kill(os.getpid(), 9)",
        "os.kill(os.getpid(), 11)",
        "return lambda: None",
        "import no_such_module",
        LOCAL,
        "open('/proc/self/fd/0').read(); return input()",
    ],
)
def test_what_goes_wrong_in_the_fork_is_left_to_vllms_own_way(tmp_path: Path, look: str) -> None:
    make_vllm(tmp_path, look)
    saw, report, printed = start(tmp_path)
    assert saw["told"]["way"] == "vllm's own"
    assert saw["told"]["pid"] == saw["front_end"]
    assert fork_inspection.FORKED not in report.get("lean", [])
    assert printed == ""


def printed_by(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.strip()


def test_a_fork_that_hangs_is_ended(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, time\n"
        f"spec = u.spec_from_file_location('runner', {fork_inspection.__file__!r})\n"
        "runner = u.module_from_spec(spec); spec.loader.exec_module(runner)\n"
        "runner._FORK_SECONDS = 1\n"
        "print(runner._forked(lambda: time.sleep(60)))\n"
    )
    assert printed_by(code) == "b''"


def test_a_fork_that_turns_its_alarm_off_and_hangs_is_ended_too() -> None:
    """As transformers does when it asks whether to trust a model's code."""
    code = (
        "import signal, time, sys\n"
        "from capdoctor.engines.in_target import fork_inspection as runner\n"
        "runner._FORK_SECONDS = 1\n"
        "print(runner._forked(lambda: (signal.alarm(0), time.sleep(60))))\n"
    )
    assert printed_by(code) == "b''"


def test_what_the_fork_leaves_running_keeps_nobody_waiting(tmp_path: Path) -> None:
    look = 'os.fork() or time.sleep(20); return {"way": "fork"}'
    make_vllm(tmp_path, f"import time; {look}")
    begin = time.monotonic()
    saw, _, _ = start(tmp_path)
    assert saw["told"]["way"] == "fork"
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize("failing", ["fork", "waitpid"])
def test_where_no_process_can_be_had_vllm_goes_its_own_way(tmp_path: Path, failing: str) -> None:
    broken = f"import os\ndef full(*_): raise BlockingIOError(11, 'full')\nos.{failing} = full\n"
    make_vllm(tmp_path, 'return {"way": "fork"}', broken + REGISTRY)
    saw, report, printed = start(tmp_path)
    assert saw["told"]["way"] == "vllm's own"
    assert fork_inspection.FORKED not in report.get("lean", [])
    assert printed == ""


@pytest.mark.parametrize("asked", ["default", "error"])
def test_pythons_warning_of_threads_and_forks_is_not_in_the_engines_log(
    tmp_path: Path, asked: str
) -> None:
    """Python from 3.12 on gives it, and shows it: the runner is ``__main__``."""
    warns = (
        "import os, warnings\nreally = os.fork\ndef fork():\n"
        "    warnings.warn('multi-threaded', DeprecationWarning, stacklevel=2)\n"
        "    return really()\nos.fork = fork\n"
    )
    make_vllm(tmp_path, 'return {"way": "fork"}', warns + REGISTRY)
    saw, _, printed = start(tmp_path, PYTHONWARNINGS=asked)
    assert saw["told"] == {"way": "fork"}
    assert printed == ""


def test_the_user_can_leave_it_to_vllm(tmp_path: Path) -> None:
    make_vllm(tmp_path, 'return {"way": "fork"}')
    saw, report, _ = start(tmp_path, **{fork_inspection.FORK_SWITCH: "0"})
    assert saw["told"]["way"] == "vllm's own"
    assert fork_inspection.FORKED not in report.get("lean", [])


def test_a_release_that_does_it_in_another_way_is_left_alone(tmp_path: Path) -> None:
    make_vllm(tmp_path, "return 1", registry="")
    saw, report, _ = start(tmp_path)
    assert saw["told"] is None
    assert report["step"] == "ready"
    assert fork_inspection.FORKED not in report.get("lean", [])
