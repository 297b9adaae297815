"""Ways to run the fake engine process under the real process control."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from capdoctor.engines.control import KeptEngine, start_order
from capdoctor.engines.ended import Ended, Limits
from capdoctor.engines.in_target import describe_python
from capdoctor.engines.interrupts import Interrupts
from capdoctor.engines.listener import BarState, Quiet, RunListener
from capdoctor.engines.rundir import RunFolder
from capdoctor.engines.runlog import RunLog
from capdoctor.engines.watch import EngineWatch, Progress
from capdoctor.model import Diagnosis, ProcessRef, RunFacts, Stage, Verdict

FAKE_ENGINE = Path(__file__).parents[1] / "helpers/fake_engine.py"
MODEL = Path(__file__).parents[1] / "data/models/llama_tiny"
PATIENT = Limits(stop_after=None, timeout=30.0, hang_after=300.0)


@dataclass
class Recorder(Quiet):
    """A listener that keeps what it is told."""

    stages: list[Stage] = field(default_factory=list)
    bars: list[BarState] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)

    def stage_began(self, stage: Stage, _seconds: float) -> None:
        self.stages.append(stage)

    def bar_moved(self, bar: BarState, _seconds: float) -> None:
        self.bars.append(bar)

    def line_printed(self, line: str, _seconds: float) -> None:
        self.lines.append(line)

    def run_ending(self, why: str) -> None:
        self.endings.append(why)


def watch_fake(
    folder: Path,
    *actions: str,
    limits: Limits = PATIENT,
    listener: RunListener | None = None,
    progress: Progress = lambda _stage: None,
    marker: str | None = None,
) -> Ended:
    """Run the fake engine under control and give how it went."""
    tmpdir = folder / "tmp"
    tmpdir.mkdir()
    run_folder = RunFolder(folder)
    # Whoever carries the marker is ended with the run: two tests must never share one.
    marker = marker or f"CAPDOCTOR_RUN={secrets.token_hex(8)}"
    name, value = marker.split("=")
    env = {**os.environ, "TMPDIR": str(tmpdir), "FAKE_REPORT": str(run_folder.report), name: value}
    order = start_order([sys.executable, str(FAKE_ENGINE), *actions], env, marker, tmpdir)
    with RunLog(run_folder) as log, Interrupts() as interrupts:
        engine = KeptEngine(order, run_folder.keeper_log)
        ended = EngineWatch(engine, log, limits, listener or Quiet(), progress).run(interrupts)
    assert run_folder.keeper_log.read_text() == ""
    return ended


def diagnose(log: Path, facts: RunFacts) -> Diagnosis:
    """Stand in for the diagnosis, which has tests of its own."""
    assert log.exists()
    return Diagnosis(
        verdict=Verdict.STARTUP_CRASH,
        crash_class="unknown",
        stage=facts.stage,
        component=None,
        error=None,
        root_frame=None,
        raised_at=None,
        process=ProcessRef(),
        confidence="unknown",
        fingerprint=f"{facts.how}-{facts.exit_code}",
    )


def make_fake_python(folder: Path, *actions: str) -> Path:
    """Make a Python that claims to have vLLM 0.33 and starts the fake engine instead of it."""
    facts = {
        "executable": "python",
        "version": "3.12.1",
        "prefix": str(folder),
        "engine": {
            "distribution": "vllm",
            "version": "0.33.0",
            "package": str(folder / "vllm"),
            "commit": "4ba787ec9",
            "checkout": None,
        },
        "torch": "2.14.0",
        "torch_build": "cuda 13.0",
    }
    (folder / "vllm").mkdir(parents=True, exist_ok=True)
    line = shlex.quote(describe_python.MARK + json.dumps(facts))
    start = shlex.join([sys.executable, str(FAKE_ENGINE), *actions])
    script = folder / "fake-python"
    script.write_text(
        f'#!/bin/sh\ncase "$1" in\n*describe_python.py) echo {line};;\n'
        f'*) FAKE_REPORT="$3"; export FAKE_REPORT; exec {start};;\nesac\n'
    )
    script.chmod(0o755)
    return script


def marked_processes(marker: str) -> list[int]:
    """Give the living processes that have ``NAME=value`` in their environment."""
    wanted = marker.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if wanted in variables and state not in "ZX":
                found.append(int(entry.name))
    return found


def wait_until(happened: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for something, and say whether it happened in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.05)
    return happened()
