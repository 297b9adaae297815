"""How long the embedded demos take once torch is imported, measured in one run.

Run: ``python bench/demos.py [ROUNDS]``. For each demo the wall time of ``capdoctor repro --model
demo/NAME`` as a user starts it, less that of ``python -c "import torch"`` right before it; medians
over the rounds. Everything else counts: both processes, the keeper, the diagnosis, the card.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from capdoctor.engines.embedded.demo_list import list_demos

IMPORT_TORCH = [sys.executable, "-c", "import torch"]
ALLOWED = 4.0
ANSWERS = (0, 1)  # it starts, it crashes


def seconds(command: list[str], expected: tuple[int, ...], state: str) -> float:
    begin = time.perf_counter()
    done = subprocess.run(
        command, check=False, capture_output=True, env={**os.environ, "XDG_STATE_HOME": state}
    )
    took = time.perf_counter() - begin
    if done.returncode not in expected:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
    return took


def measure(name: str, rounds: int, state: str) -> tuple[float, float]:
    """Give the median seconds of ``import torch`` and of what the demo takes beyond it."""
    demo = [sys.executable, "-m", "capdoctor", "repro", "--model", f"demo/{name}"]
    pairs = [
        (seconds(IMPORT_TORCH, (0,), state), seconds(demo, ANSWERS, state)) for _ in range(rounds)
    ]
    base = statistics.median(first for first, _ in pairs)
    return base, statistics.median(second - first for first, second in pairs)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    late = []
    with tempfile.TemporaryDirectory(prefix="bench-demos-") as state:
        seconds(IMPORT_TORCH, (0,), state)  # the files are in memory from here on
        for demo in list_demos():
            base, beyond = measure(demo.name, rounds, state)
            late += [demo.name] if beyond >= ALLOWED else []
            print(f"demo/{demo.name:<22} {beyond:5.2f} s beyond import torch ({base:.2f} s)")
    print(f"allowed {ALLOWED} s each" + (f"; late: {', '.join(late)}" if late else ""))
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
