"""Ten thousand random histories: the answer always holds the culprit, a culprit is never wrong.

    python -m bench.bisect_property [--count 10000] [--first 0] [--out FILE]

Islands, other crashes, priors that mislead, several workers, and one in five flaky. A second table
says how often a crash is named wrongly that is flaky and was *not* known to be.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from capdoctor.bisection.search.case import Ending
from tests.bisection.random_histories import judge_trial, trial
from tests.bisection.simulated import Made, bisect_made, seeded

SURPRISES = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    begin = time.monotonic()
    wrong = []
    kinds: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        one = trial(seed)
        kinds["flaky" if one.flaky else "reliable"] += 1
        complaint = judge_trial(one, seed)
        if complaint:
            wrong.append(f"seed {seed}: {complaint}")
    lines = [f"{options.count} histories ({dict(kinds)}), wrong: {len(wrong)}", *wrong]
    lines += [_surprise(rate) for rate in (0.95, 0.9, 0.7, 0.5)]
    lines.append(f"measured in {time.monotonic() - begin:.0f} s")
    text = "\n".join(lines) + "\n"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
    print(text)


def _surprise(rate: float) -> str:
    """Bisect with a crash that is flaky although nobody said so and the bad end crashed at once."""
    rng = seeded(int(rate * 1000))
    named, wrong = 0, 0
    for _ in range(SURPRISES):
        made = Made(256, rng.randint(1, 256), rate=rate)
        end = bisect_made(made, rng).end
        named += end.ending is Ending.FOUND
        wrong += end.ending is Ending.FOUND and end.hi != made.culprit
    return f"not known to be flaky, rate {rate}: {wrong} of {named} named commits are wrong"


if __name__ == "__main__":
    main()
