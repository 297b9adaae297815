"""``--shrink`` on a real GPU: the smaller sparse-MLA model crashes as the one of full depth does.

Run: ``python tests/gpu/shrink/visit.py OUT WORK [PHASE...]`` in the repository's root, with the
Python that has the CUDA vLLM. Without phases: ``prepare``, ``full``, ``shrunk``, ``compare``: two
engine starts. ``released`` (one more start, only when named) shows that the smaller model starts
on the tree as released. OUT gets ``results.json`` and a folder of each run's files; WORK keeps the
tree and the state, so that a phase that is done is skipped. A phase that fails says so, and the
others go on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.gpu import phases  # noqa: E402 - after the path is set
from tests.gpu.flagship import tree  # noqa: E402
from tests.gpu.starts import ENGINE_ENV, SPARSE_ARGS, engine_options  # noqa: E402

# The tiny widths of the model that shows the crash, with the depth of DeepSeek-V3.2.
MODEL = {
    **json.loads((ROOT / "tests/data/models/sparse_mla_tiny.json").read_text()),
    "num_hidden_layers": 61,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,
    "n_routed_experts": 16,
}
# The Python that has vLLM, where it is not the one that runs this.
PYTHON = os.environ.get("ENGINE_PYTHON", sys.executable)
WHERE = "import importlib.util as u; print(u.find_spec('vllm').origin)"
ENGINE_S = 240  # a start to the crash took 43 to 94 s
MARGIN_S = 30
KEPT_FILES = ("engine.log", "outcome.json", "driver.log", "spec.json", "shrunk/config.json")
ALIKE = ("class", "stage", "fingerprint")


class Visit(phases.Visit):
    """Where tree and model lie, and how capdoctor is called."""

    def __init__(self, out: Path, work: Path) -> None:
        super().__init__(out, work)
        self.repo, self.model = self.work / "repo", self.work / "model"

    def repro(self, name: str, *more: str | Path) -> dict[str, Any]:
        """Start the model once; give what matters of the answer, keep the run's files in OUT."""
        folder = self.work / "runs" / name
        line = [
            *(sys.executable, "-m", "capdoctor", "repro", "--model", self.model),
            *("--python", PYTHON, "--out", folder, "--json", "--timeout", ENGINE_S),
            *engine_options(SPARSE_ARGS),
            *more,
        ]
        begin = time.monotonic()
        done = subprocess.run(
            [str(word) for word in line],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, **ENGINE_ENV},
            check=False,
            timeout=ENGINE_S + MARGIN_S,
        )
        wall = round(time.monotonic() - begin, 1)
        self._keep(name, folder)
        if not done.stdout.strip():
            raise OSError(f"no answer, exit code {done.returncode}: {done.stderr[-1500:]}")
        return {"exit": done.returncode, "wall_s": wall, **short(json.loads(done.stdout))}

    def _keep(self, name: str, folder: Path) -> None:
        for file in KEPT_FILES:
            if (folder / file).is_file():
                place = self.out / name / file
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / file, place)


def short(answer: dict[str, Any]) -> dict[str, Any]:
    """Give the part of an answer that the comparison and the docs need."""
    kept = ("outcome", "reason", "seconds", "stages", "changes")
    found = {key: answer[key] for key in kept if answer.get(key)}
    diagnosis = answer.get("diagnosis") or {}
    names = (*ALIKE, "confidence", "error", "root_frame")
    found["diagnosis"] = {key: diagnosis[key] for key in names if key in diagnosis}
    return found


def compare(visit: Visit) -> dict[str, Any]:
    """Say whether the two crashes are one, and what shrinking saved."""
    full, small = (visit.results[name] for name in ("full", "shrunk"))
    diagnoses = full.get("diagnosis") or {}, small.get("diagnosis") or {}
    return {
        "both_crashed": [each.get("outcome") for each in (full, small)] == ["crashed", "crashed"],
        **{key: [each.get(key) for each in diagnoses] for key in ALIKE},
        "same_fingerprint": bool(diagnoses[0].get("fingerprint"))
        and diagnoses[0]["fingerprint"] == diagnoses[1].get("fingerprint"),
        "seconds": [each.get("seconds") for each in (full, small)],
    }


def prepare(visit: Visit) -> dict[str, Any]:
    """Lay out the tree without the guards, and the model of full depth."""
    asked = subprocess.run([PYTHON, "-c", WHERE], capture_output=True, text=True, check=True)
    visit.model.mkdir(parents=True, exist_ok=True)
    (visit.model / "config.json").write_text(json.dumps(MODEL))
    shutil.rmtree(visit.repo, ignore_errors=True)
    tree.start(visit.repo, Path(asked.stdout.strip()).parent.parent)
    tree.take_guards_out(visit.repo)
    return {"commit": tree.commit(visit.repo, "Take the guards out")}


def full(visit: Visit) -> dict[str, Any]:
    return visit.repro("full", "--source", visit.repo)


def shrunk(visit: Visit) -> dict[str, Any]:
    return visit.repro("shrunk", "--source", visit.repo, "--shrink")


def released(visit: Visit) -> dict[str, Any]:
    return visit.repro("released", "--shrink", "--stop-after", "profile_cudagraph_memory")


PHASES: dict[str, Callable[[Visit], dict[str, Any]]] = {
    "prepare": prepare,
    "full": full,
    "shrunk": shrunk,
    "compare": compare,
    "released": released,
}
DEFAULT = ("prepare", "full", "shrunk", "compare")


def main(out: str, work: str, *wanted: str) -> int:
    """Do the phases; the exit code is 1 if one of them failed."""
    return phases.do_phases(Visit(Path(out), Path(work)), PHASES, wanted or DEFAULT)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
