"""How far a traceback shortens a bisection, on the real history of ROCm/aiter.

    CAPDOCTOR_BENCH_AITER=CLONE python -m bench.guided_aiter [--cases 40] [--commits 1024]

Windows of first-parent commits below a random bad end; the culprit is one that touches the
package's Python; its traceback is made up from files, functions and lines that exist at the bad
end, the culprit's own file being innermost with probability q (15 % of the rest lack it, in the
others it is further out), the function one that it changed in 75 %, the line one of its own in
50 %. Weights come from the product, which reads them out of git. Runs include both ends.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from capdoctor.bisection.history.blobs import read_file
from capdoctor.bisection.history.gitcall import git, git_or_none
from capdoctor.bisection.history.layout import layout_of
from capdoctor.bisection.history.mirror import Mirror, open_mirror
from capdoctor.bisection.history.tree_keys import live_commits
from capdoctor.bisection.prior.build import Crash, weights_of
from capdoctor.bisection.search.case import Settings
from capdoctor.bisection.search.cuts import bits
from capdoctor.model import Frame
from tests.bisection.simulated import Made, bisect_made

SEED = 5202
ABSENT, FUNCTION_HIT, LINE_HIT = 0.15, 0.75, 0.5
MODES = (("q=1.0", 1.0), ("q=0.7", 0.7), ("q=0.4", 0.4), ("absent", 0.0), ("not Python", 0.0))
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class Window:
    """A range: its commits oldest first, those that ship something, and which touch Python."""

    commits: tuple[str, ...]
    live: tuple[str, ...]
    python: dict[str, tuple[str, ...]]
    hot: Counter[str]

    @property
    def bad(self) -> str:
        """The newest commit, which crashes."""
        return self.commits[-1]


@dataclass(frozen=True)
class Measured:
    """Runs of one culprit with 1+1 and with 3+3 confirmation; ``most`` binary search may take."""

    once: int
    thrice: int
    most: int
    seconds: float


def main() -> None:
    options = _options()
    if options.clone is None:
        print("skipped: no clone of ROCm/aiter (give one, or set CAPDOCTOR_BENCH_AITER)")
        return
    with tempfile.TemporaryDirectory(prefix="bench-guided-") as folder:
        mirror = open_mirror(options.clone, Path(folder) / "mirror")
        text = "\n".join(_report(mirror, options)) + "\n"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text)
    print(text)


def _options() -> argparse.Namespace:
    given = os.environ.get("CAPDOCTOR_BENCH_AITER")
    parser = argparse.ArgumentParser(description="guided bisection on aiter's history")
    parser.add_argument("clone", nargs="?", type=Path, default=Path(given) if given else None)
    parser.add_argument("--cases", type=int, default=40, help="culprits a row")
    parser.add_argument("--commits", type=int, default=1024)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def _report(mirror: Mirror, options: argparse.Namespace) -> Iterator[str]:
    begin = time.monotonic()
    history = git(mirror.folder, "rev-list", "--first-parent", "--reverse", "HEAD").split()
    tip = git(mirror.folder, "show", "-s", "--format=%h of %cs", "HEAD").strip()
    yield f"ROCm/aiter at {tip}, {len(history)} first-parent commits, seed {SEED}"
    rng = random.Random(SEED)
    windows = [_window(mirror, history, rng, options.commits) for _ in range(4)]
    inert = 1 - statistics.mean(len(one.live) / (len(one.commits) - 1) for one in windows)
    binary = math.ceil(math.log2(statistics.mean(len(one.live) for one in windows)))
    yield f"4 windows of {options.commits} commits, {inert:.0%} of them inert and dropped"
    yield f"binary search over what is left: {binary} runs and the two ends"
    yield ""
    yield f"{'traceback':>11} {'median':>7} {'mean':>6} {'p90':>4} {'max':>4} {'<= 8':>6}"
    yield from _rows(mirror, windows, rng, options.cases)
    yield f"\nmeasured in {time.monotonic() - begin:.0f} s"


def _rows(
    mirror: Mirror, windows: Sequence[Window], rng: random.Random, cases: int
) -> Iterator[str]:
    for name, share in MODES:
        found = [
            _measure(mirror, windows[number % len(windows)], rng, name, share)
            for number in range(cases)
        ]
        once = sorted(one.once for one in found)
        small = sum(1 for runs in once if runs <= 8) / cases
        yield (
            f"{name:>11} {statistics.median(once):>7} {statistics.mean(once):>6.1f} "
            f"{once[int(0.9 * cases)]:>4} {once[-1]:>4} {small:>6.0%}   with 3+3: median "
            f"{statistics.median(one.thrice for one in found)}, max "
            f"{max(one.thrice for one in found)}; over binary search's most "
            f"{max(one.once - one.most for one in found):+d}; weights in "
            f"{statistics.median(one.seconds for one in found):.1f} s"
        )


def _window(mirror: Mirror, history: list[str], rng: random.Random, count: int) -> Window:
    end = rng.randint(count, len(history) - 1)
    commits = tuple(history[end - count : end + 1])
    layout = layout_of(mirror, commits[-1])
    assert layout is not None
    live = live_commits(mirror, commits[0], commits[-1], layout.ships)
    python = _python_commits(mirror, commits)
    hot = Counter(path for paths in python.values() for path in paths)
    return Window(commits, tuple(sha for sha in commits[1:] if sha in live), python, hot)


def _python_commits(mirror: Mirror, commits: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the package's Python files of each commit, those that still exist at the end."""
    listed = git(
        mirror.folder,
        *("log", "--first-parent", "--diff-merges=first-parent", "--name-only", "--format=%x00%H"),
        *(commits[-1], f"^{commits[0]}", "--", "aiter"),
    )
    present = set(
        git(mirror.folder, "ls-tree", "-r", "--name-only", commits[-1], "--", "aiter").splitlines()
    )
    found = {}
    for block in listed.split("\0")[1:]:
        sha, *paths = block.split("\n")
        kept = [p for p in paths if p.endswith(".py") and p in present and "/configs/" not in p]
        if kept:
            found[sha] = tuple(kept)
    return found


def _measure(
    mirror: Mirror, window: Window, rng: random.Random, mode: str, share: float
) -> Measured:
    culprit, frames = _case(mirror, window, rng, mode, share)
    layout = layout_of(mirror, window.bad)
    begin = time.monotonic()
    ends = window.commits[0], window.bad
    weights = weights_of(mirror, layout, ends, window.live, Crash(frames))
    seconds = time.monotonic() - begin
    made = Made(len(window.live), window.live.index(culprit) + 1)
    once = bisect_made(made, rng, settings=Settings(confirm=1), prior=weights)
    thrice = bisect_made(made, rng, settings=Settings(confirm=3, confirmed=0.0), prior=weights)
    assert once.end.hi == thrice.end.hi == made.culprit
    return Measured(once.runs, thrice.runs, 2 + bits(made.size), seconds)


def _case(
    mirror: Mirror, window: Window, rng: random.Random, mode: str, share: float
) -> tuple[str, tuple[Frame, ...]]:
    while True:
        if mode == "not Python":
            culprit = rng.choice([sha for sha in window.live if sha not in window.python])
        else:
            culprit = rng.choice([sha for sha in window.live if sha in window.python])
        others = [frame for _ in range(rng.randint(6, 13)) if (frame := _hot(mirror, window, rng))]
        if mode in ("absent", "not Python"):
            mine = set(window.python.get(culprit, ()))
            return culprit, tuple(frame for frame in others if frame.file not in mine)
        own = _own_frame(mirror, window, rng, culprit)
        if own is None:
            continue
        return culprit, _placed(own, others, rng, share)


def _placed(own: Frame, others: list[Frame], rng: random.Random, share: float) -> tuple[Frame, ...]:
    if rng.random() < share:
        return (own, *others)
    others = [frame for frame in others if frame.file != own.file]
    if share < 1 and rng.random() < ABSENT / (1 - share):
        return tuple(others)
    at = rng.randint(1, max(1, len(others)))
    return (*others[:at], own, *others[at:])


def _hot(mirror: Mirror, window: Window, rng: random.Random) -> Frame | None:
    path = rng.choices(list(window.hot), list(window.hot.values()))[0]
    functions = _functions(mirror, window.bad, path)
    if not functions:
        return None
    name, first, last = rng.choice(functions)
    return Frame(path, rng.randint(first, last), name)


def _own_frame(mirror: Mirror, window: Window, rng: random.Random, culprit: str) -> Frame | None:
    path = rng.choice(window.python[culprit])
    functions = _functions(mirror, window.bad, path)
    if not functions:
        return None
    changed = _changed_functions(mirror, culprit, path)
    hits = [one for one in functions if one[0] in changed]
    name, first, last = rng.choice(hits if hits and rng.random() < FUNCTION_HIT else functions)
    lines = [line for line in _lines_of(mirror, window, culprit, path) if first <= line <= last]
    own = lines and rng.random() < LINE_HIT
    return Frame(path, rng.choice(lines) if own else rng.randint(first, last), name)


@cache
def _functions(mirror: Mirror, sha: str, path: str) -> tuple[tuple[str, int, int], ...]:
    """Return the functions of a file: name, first and last line."""
    try:
        tree = ast.parse(read_file(mirror, sha, path) or b"")
    except (SyntaxError, ValueError):
        return ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple(
        (node.name, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    )


def _changed_functions(mirror: Mirror, culprit: str, path: str) -> set[str]:
    """Return the functions that hold a line which the culprit added, by its own syntax tree."""
    patch = git(mirror.folder, "diff", "-U0", f"{culprit}^1", culprit, "--", path)
    spans = [(int(a), int(a) + int(b or 1) - 1) for a, b in _HUNK.findall(patch)]
    return {
        name
        for name, first, last in _functions(mirror, culprit, path)
        if any(a <= last and b >= first for a, b in spans)
    }


def _lines_of(mirror: Mirror, window: Window, culprit: str, path: str) -> list[int]:
    out = git_or_none(mirror.folder, "blame", "--first-parent", "-s", "-l", window.bad, "--", path)
    lines = (out or "").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.startswith(culprit)]


if __name__ == "__main__":
    sys.exit(main())
