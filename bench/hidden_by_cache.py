"""Whether compile caches kept from an earlier start hide a compiler that has broken since.

Run: ``python -m bench.hidden_by_cache OUT --python PYTHON`` with a vLLM for the CPU. Three compiled
starts: one that fills caches with a compiler that works, one with the same caches after that very
compiler has broken, one with fresh caches and the broken compiler. OUT gets
``hidden_by_cache.json``; exit 0 if the second start came out as the third, 1 if the caches hid it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.time_to_verdict import SHARED

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "tests/data/models/llama_tiny"
WORKS = '#!/bin/sh\nexec g++ "$@"\n'
# It still says which compiler it is; what it is given to compile, it does not.
BROKEN = (
    '#!/bin/sh\ncase "$*" in *.cpp*) echo "fatal error: no such header" >&2; exit 1;; esac\n'
    'exec g++ "$@"\n'
)


def start(out: Path, python: Path, name: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Start once to ready; give how it came out."""
    base = {key: value for key, value in os.environ.items() if key not in SHARED}
    command = [
        *(sys.executable, "-m", "capdoctor", "repro", "--model", str(MODEL), "--json"),
        *("--python", str(python), "--out", str(out / name), "--timeout", "400"),
        *("--engine-arg", "max_model_len=512"),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**base, **variables}, capture_output=True, text=True, check=False
    )
    if not done.stdout:
        return {"start": name, "outcome": None, "failed": done.stderr[-800:]}
    body = json.loads(done.stdout)
    found = (body["diagnosis"] or {}).get("class")
    return {"start": name, "outcome": body["outcome"], "class": found, "seconds": body["seconds"]}


def main(words: Sequence[str] | None = None) -> int:
    """Start three times and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--python", type=Path, required=True)
    given = parser.parse_args(words)
    out, python = given.out.resolve(), given.python.absolute()
    out.mkdir(parents=True, exist_ok=True)
    compiler = out / "compiler"
    compiler.write_text(WORKS)
    compiler.chmod(0o755)
    kept = {name: str(out / "caches" / folder) for name, folder in SHARED.items()}
    fresh = {"CXX": str(compiler)}
    runs = [start(out, python, "fill", {**fresh, **kept})]
    compiler.write_text(BROKEN)
    runs.append(start(out, python, "kept", {**fresh, **kept}))
    runs.append(start(out, python, "fresh", fresh))
    (out / "hidden_by_cache.json").write_text(json.dumps(runs, indent=1) + "\n")
    for run in runs:
        print(run)
    return 0 if runs[1]["outcome"] == runs[2]["outcome"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
