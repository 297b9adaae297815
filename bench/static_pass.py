"""The static pass on the wheels of vLLM and aiter: how long it takes, how often it is right.

    python bench/static_pass.py [--wheels FOLDER] [--out bench/results/static_pass.json]

The wheels are fetched with pip into FOLDER unless they are there. The pass runs on two cores.
The labels in ``static_labels.json`` were made by reading the code; a candidate that has no label
or a label that has no candidate is counted, so that the figures cannot drift unnoticed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LABELS = Path(__file__).with_name("static_labels.json")
# tree -> (what pip calls it, the wheel's file name pattern, the package's folder)
TREES = {
    "vllm": ("vllm==0.33.0", "vllm-0.33.0-*.whl", "vllm"),
    "aiter": ("amd-aiter==0.1.7.post2.dev18", "amd_aiter-0.1.7*.whl", "aiter"),
}
CORES = 2

Key = tuple[str, str, int, str]


def unpack(tree: str, wheels: Path, into: Path) -> Path:
    """Give the package's folder with the Python files of its wheel."""
    requirement, pattern, package = TREES[tree]
    found = sorted(wheels.glob(pattern))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--pre", "-d", str(wheels)]
        subprocess.run([*command, requirement], check=True)
        found = sorted(wheels.glob(pattern))
    with zipfile.ZipFile(found[0]) as archive:
        for member in archive.namelist():
            if member.endswith(".py") and member.startswith(f"{package}/"):
                archive.extract(member, into)
    return into / package


def scan(folder: Path) -> tuple[dict[str, Any], float, float]:
    """Run the command on two cores; give its answer, the seconds, the seconds of CPU."""
    cores = sorted(os.sched_getaffinity(0))[:CORES]
    command = [sys.executable, "-m", "capdoctor", "check", "--static", str(folder), "--json"]
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [*command, "--certainty", "weak"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    seconds, after = time.perf_counter() - begin, os.times()
    busy = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer, seconds, busy


def precision(found: dict[Key, str]) -> dict[str, Any]:
    """Compare the labels with the candidates."""
    labels = json.loads(LABELS.read_text(encoding="utf-8"))["labels"]
    keyed = {(row["tree"], row["file"], row["line"], row["rule"]): row for row in labels}
    table: dict[str, Counter[str]] = {}
    for key, row in keyed.items():
        if key not in found:
            continue
        count = table.setdefault(f"{row['tree']} {found[key]}", Counter())
        count["labelled"] += 1
        count["operation_right"] += row["operation_right"]
        count["captured"] += row["captured"]
    total: Counter[str] = Counter()
    for count in table.values():
        total.update(count)
    return {
        "by_tree_and_certainty": {name: dict(count) for name, count in sorted(table.items())},
        "all": dict(total),
        "labels_without_candidate": [list(key) for key in keyed if key not in found],
        "likely_or_possible_without_label": [
            list(key) for key, grade in found.items() if grade != "weak" and key not in keyed
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, default=Path(tempfile.gettempdir()) / "wheels")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.wheels.mkdir(parents=True, exist_ok=True)
    found: dict[Key, str] = {}
    runs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for tree in TREES:
            answer, seconds, busy = scan(unpack(tree, options.wheels, Path(folder) / tree))
            for item in answer["candidates"]:
                found[tree, item["file"], item["line"], item["rule"]] = item["certainty"]
            (read,) = answer["read"]
            runs[tree] = {
                "files": read["files"],
                "functions": read["functions"],
                "seconds": round(seconds, 1),
                "cpu_seconds": round(busy, 1),
                "load": round(os.getloadavg()[0], 1),
                "candidates": dict(Counter(i["certainty"] for i in answer["candidates"])),
            }
    result = {"cores": CORES, "runs": runs, "precision": precision(found)}
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
