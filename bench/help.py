"""How long ``capdoctor --help`` takes, as a ratio to ``python -c "import typer"``, in one run.

Run: ``python bench/help.py [ROUNDS]``. With Rich's help (stdout a terminal) and without.
"""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

BASELINE = [sys.executable, "-c", "import typer"]
HELP = [sys.executable, "-m", "capdoctor", "--help"]
ALLOWED = {"terminal": 2.6, "pipe": 1.3}


def piped(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def on_terminal(command: list[str]) -> float:
    begin = time.perf_counter()
    pid, master = pty.fork()
    if pid == 0:
        os.execv(command[0], command)  # noqa: S606 - a terminal of its own
    try:
        while os.read(master, 65536):
            pass
    except OSError:  # the child's end was closed
        pass
    finally:
        os.close(master)
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    return time.perf_counter() - begin


def ratio(measure: Callable[[list[str]], float], rounds: int) -> tuple[float, float]:
    """Give (baseline seconds, ratio), medians of alternating runs."""
    pairs = [(piped(BASELINE), measure(HELP)) for _ in range(rounds)]
    base = statistics.median(first for first, _ in pairs)
    return base, statistics.median(second / first for first, second in pairs)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    late = 0
    for name, measure in (("terminal", on_terminal), ("pipe", piped)):
        base, found = ratio(measure, rounds)
        late += found > ALLOWED[name]
        print(f"{name}: {found:.2f} x import typer ({base * 1000:.0f} ms), allowed {ALLOWED[name]}")
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
