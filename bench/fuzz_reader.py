"""Feed the reader many damaged logs: no exception, none over 2 s, memory within its bound.

``python bench/fuzz_reader.py --count 100000`` prints what it saw; it stops at the first failure
and names its seed.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from capdoctor.logs import read_text
from tests.logs.fuzzing import damaged
from tests.logs.test_fuzz import assert_sound

SLOWEST = 2.0  # seconds
LARGEST = 300.0  # MB of resident memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=10_000, help="first seed")
    options = parser.parse_args()
    slowest, slowest_seed, size, begin = 0.0, 0, 0, time.perf_counter()
    for seed in range(options.first, options.first + options.count):
        data = damaged(seed)
        started = time.perf_counter()
        try:
            assert_sound(read_text(data))
        except Exception:
            print(f"seed {seed} failed", file=sys.stderr)
            raise
        taken = time.perf_counter() - started
        if taken > slowest:
            slowest, slowest_seed = taken, seed
        if taken > SLOWEST:
            print(f"seed {seed} took {taken:.1f} s", file=sys.stderr)
            return 1
        size += len(data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    facts = {
        "logs": options.count,
        "mb": size >> 20,
        "seconds": round(time.perf_counter() - begin, 1),
        "slowest_s": round(slowest, 3),
        "slowest_seed": slowest_seed,
        "peak_mb": round(peak, 1),
    }
    print(json.dumps(facts))
    return 0 if peak < LARGEST else 1


if __name__ == "__main__":
    sys.exit(main())
