"""How fast and how small the reader is, against ``grep -c ERROR`` on the same file in one run.

The log is made here from the corpus in ``tests/data/corpus``: one start-up of four ranks, then
INFO lines of a serving engine and of the corpus (at least 99 % of all lines), then a crash.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/data/corpus"
CRASH = CORPUS / "vllm-56785-sparse-mla-event.log"
CHILD = """
import json, sys, time
begin = time.perf_counter()
from capdoctor.logs import read_log
log = read_log(sys.argv[1])
seconds = time.perf_counter() - begin
import pathlib, re
peak = int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
nodes = [[n.type, n.line, len(n.frames)] for run in log.runs for n in run.nodes]
print(json.dumps({"seconds": seconds, "peak_mb": peak / 1024, "nodes": nodes, "runs": len(log.runs),
                  "looked_at": log.looked_at, "lines": log.total_lines}))
"""


def info_lines() -> list[bytes]:
    lines = [
        line
        for path in sorted(CORPUS.glob("vllm-*.log"))
        for line in path.read_bytes().split(b"\n")
        if b" INFO " in line and 40 < len(line) < 400
    ]
    steady = [
        b"(APIServer pid=1) INFO 11-20 03:20:%02d [loggers.py:257] Engine 000: Avg prompt "
        b"throughput: %d.%d tokens/s, Avg generation throughput: %d.%d tokens/s, Running: %d reqs, "
        b"Waiting: 0 reqs, GPU KV cache usage: %d.%d%%, Prefix cache hit rate: 1.0%%"
        % (i % 60, i, i % 10, i * 3, i % 7, i % 64, i % 97, i % 10)
        for i in range(400)
    ]
    starts = (
        b"version",
        b"Initializing",
        b"non-default",
        b"detected platform",
        b"init engine",
        "\u2588".encode(),
    )
    return [line for line in lines if not any(s in line for s in starts)] + steady


def blocks(size: int) -> Iterator[bytes]:
    lines, dice = info_lines(), random.Random(1)
    head, tail = split_crash()
    yield head
    written = len(head)
    while written < size - len(tail):
        block = b"\n".join(dice.choices(lines, k=4_000)) + b"\n"
        written += len(block)
        yield block
    yield tail


def split_crash() -> tuple[bytes, bytes]:
    data = CRASH.read_bytes()
    at = data.index(b"(Worker_TP0 pid=420) ERROR")
    return data[:at], data[at:]


def timed(command: list[str]) -> tuple[float, str]:
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return time.perf_counter() - begin, done.stdout + done.stderr


def measure(size_mb: int, repeats: int, folder: Path) -> dict[str, object]:
    path = folder / f"{size_mb}.log"
    with path.open("wb") as file:
        for block in blocks(size_mb << 20):
            file.write(block)
    infos, _ = int(timed(["grep", "-c", " INFO ", str(path)])[1]), None
    grep, read, answer = [], [], {}
    for _ in range(repeats):
        grep.append(timed(["grep", "-c", "ERROR", str(path)])[0])
        seconds, out = timed([sys.executable, "-c", CHILD, str(path)])
        answer = json.loads(out)
        read.append(seconds)
    path.unlink()
    return {
        "size_mb": size_mb,
        "grep_s": round(min(grep), 3),
        "read_s": round(min(read), 3),
        "ratio": round(min(read) / min(grep), 2),
        "peak_mb": round(float(answer["peak_mb"]), 1),
        "info_share": round(infos / int(answer["lines"]), 4),
        "looked_at": answer["looked_at"],
        "nodes": answer["nodes"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 400], metavar="MB")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            print(json.dumps(measure(size, options.repeats, Path(folder))))


if __name__ == "__main__":
    main()
