"""How soon `repro` answers, against what a user would do instead: wait until the engine is ready.

Run: ``python -m bench.time_to_verdict OUT [--python PYTHON] [--model DIR] [--engine-arg K=V]
[--budget SECONDS] [--steps STEP...] [--warm N] [--single NAME...]``. One after the other: plain
vLLM to "ready", and ``capdoctor repro --stop-after profile_cudagraph_memory``; first each with
caches that hold nothing, then with warm ones, in turns. A time is that of the whole command, from
its start until its processes are gone (plain: until ready). OUT gets ``time_to_verdict.json``.

Each way has caches of its own, so that none is faster for what another left. Bytecode of the
installed packages is there for all, unless an arm says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plain_start import START, wait_until_ready
from capdoctor.engines.environment import COMPILE_CACHES

ROOT = Path(__file__).resolve().parent.parent
STAGE = "profile_cudagraph_memory"
ALLOWED = 0.35
STEPS = ("cold", "warm", "single")
SHORTEST = 20  # seconds; no start is shorter
# Where vLLM and what it uses keep what they have compiled.
CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "TILELANG_CACHE_DIR": "tilelang",
    "DG_JIT_CACHE_DIR": "deep_gemm",
    "CUDA_CACHE_PATH": "cuda",
}
# What repro gives each run a folder of its own for; given by hand, runs share it as in a series.
SHARED = COMPILE_CACHES
# A benchmark of ways to start must not inherit one.
NOT_INHERITED = (
    *CACHES,
    *SHARED,
    "VLLM_USE_FLASHINFER_SAMPLER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "CAPDOCTOR_FORK_INSPECTION",
    "CAPDOCTOR_IMPORT_GC",
)


@dataclass(frozen=True)
class Way:
    """One way to start: options and variables beyond the common ones.

    ``keeps`` names those of ``SHARED`` that it shares with every other start.
    """

    name: str
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    keeps: tuple[str, ...] = ()
    plain: bool = False


# Bytecode is looked for where nothing is, and nothing can be put.
_NO_BYTECODE = (("PYTHONPYCACHEPREFIX", "/dev/null"), ("PYTHONDONTWRITEBYTECODE", "1"))
PLAIN = Way("plain", keeps=tuple(SHARED), plain=True)
OURS = Way("repro")
SERIES = Way("repro, caches shared as in a series", keeps=tuple(SHARED))
SINGLE = {
    way.name: way
    for way in (
        OURS,
        Way("shrink", ("--shrink",)),
        Way("shrink, caches shared", ("--shrink",), keeps=tuple(SHARED)),
        Way("triton cache kept", keeps=("TRITON_CACHE_DIR",)),
        Way(
            "triton and inductor caches kept", keeps=("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
        ),
        Way("vllm's own inspection", variables=(("CAPDOCTOR_FORK_INSPECTION", "0"),)),
        Way("garbage collected during imports", variables=(("CAPDOCTOR_IMPORT_GC", "1"),)),
        Way("no bytecode", variables=_NO_BYTECODE),
        Way("flashinfer sampler", variables=(("VLLM_USE_FLASHINFER_SAMPLER", "1"),)),
        Way("one process", variables=(("VLLM_ENABLE_V1_MULTIPROCESSING", "0"),)),
        Way("no aot compile", variables=(("VLLM_USE_AOT_COMPILE", "0"),)),
        Way("no compile cache", variables=(("VLLM_DISABLE_COMPILE_CACHE", "1"),)),
        Way("no plugins", variables=(("VLLM_PLUGINS", ""),)),
    )
}


@dataclass
class Machine:
    """Where the engine is, what is started, and what has been measured so far.

    ``work`` holds caches and run folders.
    """

    out: Path
    work: Path
    python: str
    model: Path
    engine_args: dict[str, Any]
    deadline: float
    runs: list[dict[str, Any]] = field(default_factory=list)

    def measure(self, way: Way, label: str) -> dict[str, Any]:
        """Start once, and keep how long it took."""
        left = self.deadline - time.monotonic()
        result: dict[str, Any] = {"way": way.name, "label": label}
        if left < self._expected(way):
            return result | {"skipped": "no time left"}
        measure = self._plain if way.plain else self._repro
        try:
            result |= measure(self._environment(way), way, left)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            result |= {"failed": repr(error)[-800:]}
        self.runs.append(result)
        self.save()
        print(json.dumps(result), flush=True)
        return result

    def _expected(self, way: Way) -> float:
        """Give the seconds that a start of this way may take, after what it took before."""
        taken = [run["seconds"] for run in self.runs if run["way"] == way.name and "seconds" in run]
        return max([SHORTEST, *(1.2 * seconds for seconds in taken[-1:])])

    def save(self) -> None:
        """Write what there is, so that an early end still leaves it."""
        text = json.dumps({"runs": self.runs, "table": table(self.runs)}, indent=1)
        (self.out / "time_to_verdict.json").write_text(text + "\n")

    def _environment(self, way: Way) -> dict[str, str]:
        caches = self.work / "caches" / ("plain" if way.plain else "repro")
        mine = {name: str(caches / folder) for name, folder in CACHES.items()}
        kept = {name: str(caches / SHARED[name]) for name in way.keeps}
        base = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        return {
            **base,
            "HF_HUB_OFFLINE": "1",
            **mine,
            **kept,
            **dict(way.variables),
        }

    def _plain(self, environment: dict[str, str], way: Way, left: float) -> dict[str, Any]:
        del way
        arguments = {"model": str(self.model), "load_format": "dummy", **self.engine_args}
        script = self.work / "plain_start.py"
        script.write_text(START)
        command = [self.python, "-u", str(script), json.dumps(arguments)]
        log = self.out / f"plain-{len(self.runs)}.log"
        return wait_until_ready(command, environment, log, left)

    def _repro(self, environment: dict[str, str], way: Way, left: float) -> dict[str, Any]:
        words = [word for k, v in self.engine_args.items() for word in _engine_arg(k, v)]
        folder = self.work / "runs" / str(len(self.runs))
        command = [
            *(sys.executable, "-m", "capdoctor", "repro", "--model", str(self.model)),
            *("--python", self.python, "--stop-after", STAGE, "--out", str(folder)),
            *("--timeout", str(int(left)), "--json", *words, *way.options),
        ]
        begin, busy = time.monotonic(), _children_busy()
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        seconds, busy = time.monotonic() - begin, _children_busy() - busy
        if not done.stdout:
            return {"failed": done.stderr[-800:]}
        body = json.loads(done.stdout)
        stages = {span["name"]: _length(span, body["seconds"]) for span in body["stages"]}
        facts = {"outcome": body["outcome"], "seconds": round(seconds, 2), "stages": stages}
        facts["cpu_seconds"] = round(busy, 2)
        if body["outcome"] != "stopped_after_stage":
            facts["failed"] = body["reason"]
            shutil.copy(folder / "engine.log", self.out / f"failed-{len(self.runs)}.log")
        return facts


def _children_busy() -> float:
    """Give the CPU seconds of all that ended: steadier than a clock on a machine with company."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _engine_arg(key: str, value: Any) -> tuple[str, str]:
    return "--engine-arg", f"{key}={json.dumps(value)}"


def _length(span: dict[str, Any], end: float) -> float:
    return round((end if span["end"] is None else span["end"]) - span["start"], 2)


def median_of(runs: Sequence[dict[str, Any]], way: str, label: str) -> float | None:
    """Give the median seconds of the runs that went well, None if there is none."""
    good = [
        run["seconds"]
        for run in runs
        if (run["way"], run["label"]) == (way, label) and "seconds" in run and "failed" not in run
    ]
    return statistics.median(good) if good else None


def table(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give for each way and label its median seconds, and how it compares with plain vLLM."""
    rows = []
    for way, label in dict.fromkeys((run["way"], run["label"]) for run in runs):
        seconds = median_of(runs, way, label)
        plain = median_of(runs, PLAIN.name, "cold" if label == "cold" else "warm")
        ratio = round(seconds / plain, 3) if seconds and plain else None
        rows.append({"way": way, "label": label, "seconds": seconds, "times_plain": ratio})
    return rows


def cold(machine: Machine) -> None:
    """Start each way once with caches that hold nothing."""
    shutil.rmtree(machine.work / "caches", ignore_errors=True)
    machine.measure(SERIES, "cold")  # fills what the warm ones share; repro's own are never warm
    machine.measure(PLAIN, "cold")


def warm(machine: Machine, times: int) -> None:
    """Start in turns with caches that are warm."""
    for _ in range(times):
        for way in (SERIES, PLAIN, OURS):
            machine.measure(way, "warm")


def single(machine: Machine, names: Sequence[str]) -> None:
    """Start with one thing done otherwise at a time."""
    for name in names:
        machine.measure(SINGLE[name], "one by one")


def read_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--model", type=Path, default=ROOT / "tests/data/models/llama_tiny")
    parser.add_argument("--engine-arg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--budget", type=float, default=1800.0)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--single", nargs="*", default=list(SINGLE), choices=list(SINGLE))
    parser.add_argument("--steps", nargs="*", default=STEPS, choices=STEPS)
    return parser.parse_args(words)


def machine_for(given: argparse.Namespace) -> Machine:
    """Lay out the folders and give what is to be measured."""
    arguments = {"skip_tokenizer_init": True}
    for pair in given.engine_arg:
        key, _, value = pair.partition("=")
        arguments[key] = json.loads(value)
    work = given.out / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    python = str(Path(given.python).absolute())
    deadline = time.monotonic() + given.budget
    return Machine(given.out, work, python, given.model.resolve(), arguments, deadline)


def main(words: Sequence[str] | None = None) -> int:
    """Measure all that the budget allows, the most telling first; say how it compares."""
    given = read_arguments(words)
    given.out = given.out.resolve()
    machine = machine_for(given)
    steps: dict[str, Callable[[], None]] = {
        "cold": lambda: cold(machine),
        "warm": lambda: warm(machine, given.warm),
        "single": lambda: single(machine, given.single),
    }
    for name in given.steps:
        steps[name]()
    shutil.rmtree(machine.work, ignore_errors=True)
    for row in table(machine.runs):
        print(row)
    found = [row["times_plain"] for row in table(machine.runs) if row["way"] == SERIES.name]
    return 0 if found and all(ratio is not None and ratio <= ALLOWED for ratio in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
