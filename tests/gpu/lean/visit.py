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
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from bench import time_to_verdict as bench  # noqa: E402 - after the path is set
from tests.gpu import phases  # noqa: E402
from tests.gpu.lean import where_time_goes  # noqa: E402
from tests.gpu.starts import GPU_QUERY  # noqa: E402

FIRST = (
    "garbage collected during imports",
    "vllm's own inspection",
    "shrink, caches shared",
    "triton cache kept",
    "no bytecode",
)
LATER = (
    "triton and inductor caches kept",
    "flashinfer sampler",
    "no compile cache",
    "shrink",
    "one process",
    "no aot compile",
)


class Visit(phases.Visit):
    """The machine that is measured, and how long that may take in seconds."""

    def __init__(self, out: Path, work: Path, budget: float) -> None:
        super().__init__(out, work)
        self.until = time.monotonic() + budget
        model = ROOT / "tests/data/models/llama_tiny"
        arguments = {"skip_tokenizer_init": True, **json.loads(os.environ.get("LEAN_ARGS", "{}"))}
        python = os.environ.get("LEAN_PYTHON", sys.executable)
        self.machine = bench.Machine(self.out, self.work, python, model, arguments, self.until)
        self.machine.runs = self.results.get("runs", [])

    def save(self, phase: str, result: Any) -> None:
        self.results["runs"] = self.machine.runs
        super().save(phase, result)


def machine(visit: Visit) -> Any:
    facts: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()}
    facts["gpu"] = _output([*GPU_QUERY])
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
    visit = Visit(Path(out), Path(work), float(os.environ.get("LEAN_BUDGET", "420")))
    failed = phases.do_phases(visit, PHASES, wanted or PHASES, until=visit.until - 20)
    shutil.rmtree(visit.work / "runs", ignore_errors=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
