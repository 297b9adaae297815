"""``capdoctor classify`` as a user runs it: a 300-line log, and large ones against ``grep -c``.

Run: ``python -m bench.classify_speed [--sizes 200 400]``. The large log is made from the corpus by
``bench.read_speed``; a wrong class or a passed bound is exit 1. Bytecode is written first, as an
installer does it.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.read_speed import CORPUS, ROOT, blocks

SMALL = CORPUS / "vllm-56785-sparse-mla-event.log"
CLASS = "capture_event_outside_graph"
OWN_SECONDS, TIMES_GREP, PEAK_MB = 0.25, 10.0, 300.0
ROUNDS = 9


def run(command: list[str], out: Path) -> tuple[float, float, float]:
    """Give wall seconds, the process's own CPU seconds, and its peak memory in MB."""
    begin = time.perf_counter()
    with out.open("wb") as file:
        pid = os.posix_spawn(
            command[0],
            command,
            {**os.environ, "PYTHONPATH": str(ROOT)},
            file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1)],
        )
    usage = os.wait4(pid, 0)[2]
    wall = time.perf_counter() - begin
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def classify(log: Path, folder: Path) -> tuple[float, float, float]:
    out = folder / "answer.json"
    command = [sys.executable, "-m", "capdoctor", "classify", str(log), "--json"]
    measured = run(command, out)
    found = json.loads(out.read_text())["class"]
    if found != CLASS:
        raise SystemExit(f"{log} is {found}, not {CLASS}")
    return measured


def small(folder: Path) -> bool:
    own = statistics.median(classify(SMALL, folder)[1] for _ in range(ROUNDS))
    print(f"297-line log: {own:.2f} s of own CPU time, allowed {OWN_SECONDS}")
    return own <= OWN_SECONDS


def large(size_mb: int, folder: Path) -> bool:
    log = folder / "large.log"
    with log.open("wb") as file:
        file.writelines(blocks(size_mb << 20))
    pairs = [
        (
            run(["/usr/bin/env", "grep", "-c", "ERROR", str(log)], folder / "count"),
            classify(log, folder),
        )
        for _ in range(3)
    ]
    times = statistics.median(ours[0] / grep[0] for grep, ours in pairs)
    peak = max(ours[2] for _, ours in pairs)
    print(f"{size_mb} MB: {times:.1f} times grep -c, allowed {TIMES_GREP}; peak {peak:.0f} MB")
    return times <= TIMES_GREP and peak <= PEAK_MB


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[200, 400], metavar="MB")
    compileall.compile_dir(ROOT / "capdoctor", quiet=1)
    with tempfile.TemporaryDirectory() as name:
        fine = [small(Path(name)), *(large(s, Path(name)) for s in parser.parse_args().sizes)]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    raise SystemExit(main())
