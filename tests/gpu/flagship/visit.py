"""The flagship crash on a real GPU, by the product alone: phases that go on where one stopped.

Run: ``python tests/gpu/flagship/visit.py OUT WORK [PHASE...]`` in the repository's root, with the
Python that has the CUDA vLLM. OUT gets ``results.json`` and what each phase printed, WORK keeps
trees and the state file. A phase that is done is skipped; one that fails says so and the visit
goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.gpu import phases  # noqa: E402 - after the path is set
from tests.gpu.flagship import traced, tree  # noqa: E402
from tests.gpu.starts import (  # noqa: E402
    ENGINE_ENV,
    SPARSE_ARGS,
    STOP,
    engine_options,
    gpus,
)

MODEL = json.loads((ROOT / "tests/data/models/sparse_mla_tiny.json").read_text())
SEED = 56785


class Visit(phases.Visit):
    """Where trees and model lie, and how capdoctor is called."""

    def __init__(self, out: Path, work: Path) -> None:
        super().__init__(out, work)
        self.model = self.work / "model"
        self.repo = self.work / "repo"
        self.history = self.work / "history"

    def capdoctor(self, name: str, *arguments: str | Path) -> dict[str, Any]:
        """Run the product with --json; keep what it printed, give what matters of the answer."""
        begin = time.monotonic()
        line = [sys.executable, "-m", "capdoctor", *map(str, arguments), "--json"]
        done = subprocess.run(
            line,
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, **ENGINE_ENV},
            check=False,
        )
        (self.work / f"{name}.json").write_text(done.stdout)
        body = json.loads(done.stdout) if done.stdout else {"stderr": done.stderr[-1500:]}
        return {
            "exit": done.returncode,
            "wall_s": round(time.monotonic() - begin, 1),
            **_short(body),
        }

    def repro(self, name: str, *more: str | Path) -> dict[str, Any]:
        return self.capdoctor(
            name,
            *("repro", "--model", self.model, "--python", sys.executable),
            *("--out", self.work / "runs" / name, *engine_options(SPARSE_ARGS), *more),
        )


def _short(body: dict[str, Any]) -> dict[str, Any]:
    kept = ("outcome", "reason", "seconds", "stages", "matrix", "workarounds_verified", "results")
    kept = (*kept, "trace", "notes")
    short = {key: body[key] for key in kept if body.get(key)}
    kept = ("answer", "culprit", "candidates", "confidence", "runs", "engine_starts", "islands")
    short |= {key: body[key] for key in kept if body.get(key) and key not in short}
    diagnosis = body.get("diagnosis")
    if diagnosis:
        names = ("class", "stage", "confidence", "error", "root_frame", "evidence", "fingerprint")
        names = (*names, "trace", "warnings")
        short["diagnosis"] = {key: diagnosis.get(key) for key in names}
    return short | ({"stderr": body["stderr"]} if "stderr" in body else {})


def trees(visit: Visit) -> Any:
    import importlib.util

    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.origin is not None
    visit.model.mkdir(parents=True, exist_ok=True)
    (visit.model / "config.json").write_text(json.dumps(MODEL))
    tree.start(visit.repo, Path(spec.origin).parent.parent)
    subprocess.run(["git", "clone", "-q", visit.repo, visit.history], check=True)
    tree.take_guards_out(visit.repo)
    tree.commit(visit.repo, "Take the guards out")
    shas, culprit = tree.history(visit.history, SEED)
    return {"commits": len(shas), "first": shas[0], "last": shas[-1], "culprit": culprit}


def repro_broken(visit: Visit) -> Any:
    return visit.repro("broken", "--source", visit.repo)


def repro_released(visit: Visit) -> Any:
    return visit.repro("released")


def stop_after(visit: Visit) -> Any:
    return {
        "released": visit.repro("stop-released", *STOP),
        "broken": visit.repro("stop-broken", "--source", visit.repo, *STOP),
    }


def matrix(visit: Visit) -> Any:
    return visit.repro("matrix", "--source", visit.repo, "--matrix", *STOP)


def matrix_to_ready(visit: Visit) -> Any:
    return visit.repro("matrix-ready", "--source", visit.repo, "--matrix")


def fix_and_back(visit: Visit) -> Any:
    fix = ("apply-fix", "sparse-mla", "--target", visit.repo)
    source = ("--source", visit.repo, *STOP)
    return {
        "check": visit.capdoctor("fix-check", *fix, "--check"),
        "apply": visit.capdoctor("fix-apply", *fix),
        "fixed": visit.repro("fixed", *source),
        "revert": visit.capdoctor("fix-revert", *fix, "--revert"),
        "broken_again": visit.repro("broken-again", *source),
    }


def bisect_by_scenario(visit: Visit) -> Any:
    found = visit.results["trees"]
    answer = visit.capdoctor(
        "bisect-scenario",
        *("bisect", "--repo", visit.history, "--good", found["first"], "--bad", found["last"]),
        *(
            "--probe",
            "scenario:sparse-mla",
            "--device",
            "cuda",
            "--work-dir",
            visit.work / "bisect-scenario",
        ),
    )
    sha = (answer.get("culprit") or {}).get("sha")
    confirmed = {}
    for name, commit in (("culprit", sha), ("parent", f"{sha}~1")) if sha else ():
        checkout = visit.work / f"at-{name}"
        tree.git(visit.history, "worktree", "add", "-q", "--detach", str(checkout), commit)
        confirmed[name] = visit.repro(f"at-{name}", "--source", checkout, *STOP)
    return {"answer": answer, "right": sha == found["culprit"], "by_engine": confirmed}


def bisect_by_engine(visit: Visit) -> Any:
    """The engine alone judges; a visit that was cut off goes on where the journal ends."""
    found, folder = visit.results["trees"], visit.work / "bisect-engine"
    if (folder / "journal.jsonl").exists():
        answer = visit.capdoctor("bisect-engine", "bisect", "resume", folder)
    else:
        answer = visit.capdoctor(
            "bisect-engine",
            *("bisect", "--repo", visit.history, "--good", found["first"], "--bad", found["last"]),
            *("--model", visit.model, "--python", sys.executable, "--no-shrink", *STOP),
            *engine_options(SPARSE_ARGS),
            *("--work-dir", folder),
        )
    return {
        "answer": answer,
        "right": (answer.get("culprit") or {}).get("sha") == found["culprit"],
    }


def demos(visit: Visit) -> Any:
    release = ".".join(_version("torch").split(".")[:2])
    return {
        demo: {
            "cuda": visit.capdoctor(
                f"{demo}-cuda", *_demo(demo), "--device", "cuda", "--out", visit.work / f"{demo}-c"
            ),
            "virtual": visit.capdoctor(
                f"{demo}-cpu",
                *_demo(demo),
                "--as-torch",
                release,
                "--out",
                visit.work / f"{demo}-v",
            ),
        }
        for demo in ("sparse-mla", "fold-indptr", "clean")
    }


def _demo(name: str) -> Sequence[str]:
    return ("repro", "--model", f"demo/{name}")


def fold_scenario(visit: Visit) -> Any:
    from tests.gpu.flagship.aiter_tree import write_tree

    found = {}
    for name in ("before", "after"):
        folder = visit.work / f"aiter-{name}"
        write_tree(folder, name)
        found[name] = visit.capdoctor(
            f"fold-{name}",
            *("repro", "--scenario", "fold-indptr", "--device", "cuda"),
            *("--source", folder, "--out", visit.work / f"fold-{name}"),
        )
    return found


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def machine(_: Visit) -> Any:
    versions = {name: _version(name) for name in ("torch", "vllm")}
    return {"date": time.strftime("%Y-%m-%d"), "gpu": gpus(), **versions}


PHASES: dict[str, Callable[[Visit], Any]] = {
    "machine": machine,
    "trees": trees,
    "repro_broken": repro_broken,
    "repro_released": repro_released,
    "stop_after": stop_after,
    "fix_and_back": fix_and_back,
    "bisect_by_scenario": bisect_by_scenario,
    "trace_broken": traced.trace_broken,
    "trace_cost": traced.trace_cost,
    "matrix": matrix,
    "matrix_to_ready": matrix_to_ready,
    "demos": demos,
    "fold_scenario": fold_scenario,
    "bisect_by_engine": bisect_by_engine,
}


def main() -> int:
    out, work, *wanted = sys.argv[1:]
    return phases.do_phases(Visit(Path(out), Path(work)), PHASES, wanted or PHASES)


if __name__ == "__main__":
    raise SystemExit(main())
