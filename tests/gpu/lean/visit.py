"""Seconds to a verdict on a real GPU, phase by phase, the most telling first.

Run: ``python tests/gpu/lean/visit.py OUT WORK [PHASE...]`` in the repository's root, with the
Python that has the CUDA vLLM; ``LEAN_BUDGET`` (seconds, 420 by default) bounds the whole. OUT gets
``results.json``, ``time_to_verdict.json`` and logs; WORK keeps caches and the state file. A phase
that is done is skipped; one that fails says so and the visit goes on.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from bench import time_to_verdict as bench  # noqa: E402 - after the path is set
from tests.gpu.lean import where_time_goes  # noqa: E402

FIRST = ("vllm's own inspection", "shrink, caches shared", "triton cache kept", "no bytecode")
LATER = (
    "triton and inductor caches kept",
    "flashinfer sampler",
    "no compile cache",
    "shrink",
    "one process",
    "no aot compile",
)


@dataclass
class Visit:
    """Folders, the state file, and the machine that is measured."""

    out: Path
    work: Path
    budget: float
    begin: float = field(default_factory=time.monotonic)
    results: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the folders, and go on where the state file ends."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(parents=True, exist_ok=True)
        if self.state.exists():
            self.results = json.loads(self.state.read_text())
        model = ROOT / "tests/data/models/llama_tiny"
        arguments = {"skip_tokenizer_init": True, **json.loads(os.environ.get("LEAN_ARGS", "{}"))}
        deadline = self.begin + self.budget
        python = os.environ.get("LEAN_PYTHON", sys.executable)
        self.machine = bench.Machine(self.out, self.work, python, model, arguments, deadline)
        self.machine.runs = self.results.get("runs", [])

    @property
    def state(self) -> Path:
        return self.work / "state.json"

    def save(self, phase: str, result: Any) -> None:
        self.results |= {phase: result, "runs": self.machine.runs}
        for path in (self.state, self.out / "results.json"):
            path.write_text(json.dumps(self.results, indent=1))


def machine(visit: Visit) -> Any:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    facts: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()}
    facts["gpu"] = _output(query)
    for name in ("torch", "vllm", "transformers", "flashinfer-python"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = None
    facts["variables"] = {n: v for n, v in os.environ.items() if n.startswith(("PYTHON", "VLLM"))}
    facts["bytecode"] = _bytecode(visit)
    return facts


def _bytecode(visit: Visit) -> Any:
    """Compile what an installer would have compiled, so that no way is charged for it."""
    begin = time.monotonic()
    found = [importlib.util.find_spec(name) for name in ("vllm", "torch", "transformers")]
    folders = [str(Path(spec.origin).parent) for spec in found if spec and spec.origin]
    there = {folder: any(Path(folder).glob("__pycache__/*.pyc")) for folder in folders}
    wanted = [folder for folder, has in there.items() if not has]
    if wanted and visit.machine.python == sys.executable:
        _output([sys.executable, "-m", "compileall", "-q", "-j", "0", *wanted])
    return {"was_there": there, "seconds": round(time.monotonic() - begin, 1)}


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return repr(error)
    return done.stdout.strip()


def cold(visit: Visit) -> Any:
    bench.cold(visit.machine)
    return bench.table(visit.machine.runs)


def warm_once(visit: Visit) -> Any:
    bench.warm(visit.machine, 1)
    return bench.table(visit.machine.runs)


def where(visit: Visit) -> Any:
    """One more start, looked at five times a second: what is each process doing?"""
    return where_time_goes.look(visit.machine, visit.work / "samples")


def first_leanings(visit: Visit) -> Any:
    bench.single(visit.machine, FIRST)
    return bench.table(visit.machine.runs)


def later_leanings(visit: Visit) -> Any:
    bench.single(visit.machine, LATER)
    return bench.table(visit.machine.runs)


PHASES: dict[str, Callable[[Visit], Any]] = {
    "machine": machine,
    "cold": cold,
    "warm_1": warm_once,
    "where": where,
    "warm_2": warm_once,
    "first_leanings": first_leanings,
    "warm_3": warm_once,
    "later_leanings": later_leanings,
}


def main() -> int:
    out, work, *wanted = sys.argv[1:]
    budget = float(os.environ.get("LEAN_BUDGET", "420"))
    visit = Visit(Path(out).resolve(), Path(work).resolve(), budget)
    for name in wanted or PHASES:
        if name in visit.results:
            continue
        if time.monotonic() - visit.begin > budget - 20:
            print(f"{name}: no time left", flush=True)
            continue
        begin = time.monotonic()
        try:
            result = PHASES[name](visit)
        except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            print(f"{name}: failed: {error!r}", flush=True)
            continue
        visit.save(name, result)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
        print(json.dumps(result)[:2500], flush=True)
    shutil.rmtree(visit.work / "runs", ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
