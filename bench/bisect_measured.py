"""The measurements behind ``bench/bisect.py``."""

from __future__ import annotations

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from capdoctor.bisection import BisectRequest
from capdoctor.bisection import bisect as product
from capdoctor.bisection.search.case import Settings
from tests.bisection.simulated import Made, bisect_made, seeded
from tests.helpers.git_repo import Commit, build_repository, git

SIZE = 512
SEED = 20261129
SCRIPT = """n=$(cat number)
echo "$n" >> {log}
[ "$n" -ge {first} ] && [ "$n" -le {last} ] && exit 125
[ "$n" -ge {culprit} ] && exit 1
exit 0
"""
ONCE = Settings(confirm=1)
# Published figures of git_bayesect at N=256, rate 0.5, run to 95 %: its own code, simulated.
BAYESECT_RUNS = 59


@dataclass(frozen=True)
class Island:
    """A stretch of commits that cannot be judged; last < first: none."""

    first: int = 1
    last: int = 0


def main() -> None:
    options = _options()
    begin = time.monotonic()
    lines = [*_heading(options), *_islands(options), *_flaky(options), *_workers()]
    lines.append(f"\nmeasured in {time.monotonic() - begin:.0f} s")
    text = "\n".join(lines) + "\n"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
    print(text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="bisection against git bisect run")
    parser.add_argument("--trials", type=int, default=20, help="real repositories a row")
    parser.add_argument("--sim", type=int, default=500, help="simulated histories a row")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _heading(options: argparse.Namespace) -> Iterator[str]:
    version = git(Path.cwd(), "--version")
    yield f"{version}, Python {sys.version.split()[0]}, seed {SEED}"
    yield f"{options.trials} real histories and {options.sim} simulated ones a row, N = {SIZE}"
    yield ""


def _islands(options: argparse.Namespace) -> Iterator[str]:
    yield "tests between the ends: mean (max)"
    yield f"{'island':>7} {'git':>12} {'capdoctor':>12} {'search':>12} {'ratio':>6}  holds culprit"
    with tempfile.TemporaryDirectory(prefix="bench-bisect-") as folder:
        commits = [Commit({"number": f"{number}"}, f"c{number}") for number in range(SIZE + 1)]
        shas = build_repository(Path(folder) / "repo", commits)
        for length in (0, 8, 32, 128):
            yield _island_row(Path(folder), shas, length, options)
    yield ""


def _island_row(
    folder: Path, shas: tuple[str, ...], length: int, options: argparse.Namespace
) -> str:
    rng = random.Random(SEED + length)
    by_git, ours, held = [], [], 0
    for number in range(options.trials):
        culprit, island = _place(rng, length)
        script = _script(folder, culprit, island)
        by_git.append(_git_tests(folder, shas, script))
        count, candidates = _our_tests(folder / f"w{length}-{number}", folder, shas, script)
        ours.append(count)
        held += shas[culprit] in candidates
    simulated = [_simulated(rng, length) for _ in range(options.sim)]
    ratio = statistics.mean(ours) / statistics.mean(by_git)
    return (
        f"{length:>7} {_spread(by_git):>12} {_spread(ours):>12} {_spread(simulated):>12} "
        f"{ratio:>6.2f}  {held}/{options.trials}"
    )


def _place(rng: random.Random, length: int) -> tuple[int, Island]:
    culprit = rng.randint(1, SIZE)
    if not length:
        return culprit, Island()
    first = rng.randint(1, SIZE - 1 - length)
    return culprit, Island(first, first + length - 1)


def _script(folder: Path, culprit: int, island: Island) -> Path:
    path = folder / "test.sh"
    log = folder / "tested"
    log.write_text("")
    text = SCRIPT.format(log=log, first=island.first, last=island.last, culprit=culprit)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


def _git_tests(folder: Path, shas: tuple[str, ...], script: Path) -> int:
    repo = folder / "repo"
    git(repo, "bisect", "start", shas[-1], shas[0])
    subprocess.run(
        ["git", "-C", str(repo), "bisect", "run", str(script)], capture_output=True, check=False
    )
    git(repo, "bisect", "reset")
    return len((folder / "tested").read_text().split())


def _our_tests(
    work: Path, folder: Path, shas: tuple[str, ...], script: Path
) -> tuple[int, tuple[str, ...]]:
    (folder / "tested").write_text("")
    request = BisectRequest(
        str(folder / "repo"), shas[0], shas[-1], str(script), any_failure=True, confirm=1
    )
    result = product(request, work_dir=work)
    tested = (folder / "tested").read_text().split()
    return sum(1 for number in tested if number not in ("0", str(SIZE))), result.candidates


def _simulated(rng: random.Random, length: int) -> int:
    culprit, island = _place(rng, length)
    islands = ((island.first, island.last, "x"),) if length else ()
    return bisect_made(Made(SIZE, culprit, islands), rng, settings=ONCE).runs - 2


def _spread(counts: Sequence[int]) -> str:
    return f"{statistics.mean(counts):.1f} ({max(counts)})"


def _flaky(options: argparse.Namespace) -> Iterator[str]:
    """Compare runs until one commit has 95 %; ours hold both ends and measure the rate."""
    count = max(20, options.sim // 5)
    yield f"flaky crash, N = 256, {count} histories: runs / commits set up (right)"
    yield f"git_bayesect's own code needs {BAYESECT_RUNS} runs at rate 0.5 (published, simulated)"
    yield f"{'rate':>7} {'fixed repeats, known':>20} {'switch cost 0':>20} {'0.5':>20} {'1':>20}"
    for rate in (0.9, 0.5, 0.3):
        cells = [_cell(_fixed(rate), rate, count)]
        cells += [_cell(_bayes(cost), rate, count) for cost in (0.0, 0.5, 1.0)]
        yield f"{rate:>7} " + " ".join(f"{cell:>20}" for cell in cells)
    yield ""


Bisection = Callable[[Made, random.Random], tuple[int, int, bool]]


def _cell(bisection: Bisection, rate: float, count: int) -> str:
    rng = random.Random(SEED)
    found = [bisection(Made(256, rng.randint(1, 256), rate=rate), rng) for _ in range(count)]
    runs, switches = (statistics.mean(one[part] for one in found) for part in (0, 1))
    right = sum(one[2] for one in found) / count
    return f"{runs:.1f} / {switches:.1f} ({right:.0%})"


def _bayes(cost: float) -> Bisection:
    def bisection(made: Made, rng: random.Random) -> tuple[int, int, bool]:
        settings = Settings(confirm=0, risk=0.05, known_flaky=True, switch_cost=cost)
        log = bisect_made(made, rng, settings=settings)
        return log.runs, log.switches, log.end.hi == made.culprit

    return bisection


def _fixed(rate: float) -> Bisection:
    """Return plain bisection with enough repeats a step to be right in 95 % of all, rate known."""
    repeats = math.ceil(math.log(0.05 / 8) / math.log(1 - rate))

    def bisection(made: Made, rng: random.Random) -> tuple[int, int, bool]:
        lo, hi, runs, steps = 0, made.size, 0, 0
        while hi - lo > 1:
            middle = (lo + hi) // 2
            steps += 1
            for _ in range(repeats):
                runs += 1
                if middle >= made.culprit and rng.random() < made.rate:
                    hi = middle
                    break
            else:
                lo = middle
        return runs, steps, hi == made.culprit

    return bisection


def _workers() -> Iterator[str]:
    yield f"rounds with k workers, N = {SIZE}: (k+1)-section needs ceil(log(N) / log(k+1))"
    for workers in (1, 2, 3, 4, 8):
        rng = seeded(SEED + workers)
        logs = [
            bisect_made(Made(SIZE, rng.randint(1, SIZE)), rng, settings=ONCE, workers=workers)
            for _ in range(50)
        ]
        ends = 2 if workers == 1 else 1
        rounds = max(log.rounds for log in logs) - ends
        tests = statistics.mean(log.runs for log in logs) - 2
        best = math.ceil(math.log(SIZE) / math.log(workers + 1))
        yield f"  k={workers}: {rounds} rounds (lower bound {best}), {tests:.1f} tests"
