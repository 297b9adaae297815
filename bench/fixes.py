"""Measure the fixes on released vLLM wheels, against what a user would do without them.

    python -m bench.fixes [--versions 0.28.0 0.29.0 ...] [--repeat 5]

For every version: status as released; with the guards taken out: apply, status, revert, bytes.
Times are medians of fresh processes, interpreter start included, and ratios to ``grep -rl`` (a
look without an answer) and to reading the same files with LibCST.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.shop import check, diff
from capdoctor.vendored_fixes.targets import find_target
from tests.helpers.package_wheels import unpack
from tests.helpers.vulnerable_vllm import take_guards_out

VERSIONS = ("0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0")
FIX = find_fix("sparse-mla")
LIST = "from capdoctor.vendored_fixes.catalogue import list_fixes; list_fixes()"
NOTHING = "pass"
CHECK = """
import sys
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.shop import check
from capdoctor.vendored_fixes.targets import find_target
fix = find_fix("sparse-mla")
print(check(fix, find_target(sys.argv[1], fix)).status_before)
assert "libcst" not in sys.modules
"""
WITH_LIBCST = """
import sys
from pathlib import Path
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
import libcst
for path in Path(sys.argv[1], "vllm").rglob("*.py"):
    data = path.read_bytes()
    if b"logical_topk_ready" in data:
        wrapper = MetadataWrapper(libcst.parse_module(data))
        wrapper.resolve_many([ParentNodeProvider, PositionProvider])
"""


def seconds(command: list[str], repeat: int) -> float:
    """Give the median wall time of a command in fresh processes."""
    taken = []
    for _ in range(repeat):
        started = time.perf_counter()
        done = subprocess.run(command, check=False, capture_output=True)
        assert done.returncode == 0 or (command[0] == "grep" and done.returncode == 1), done.stderr
        taken.append(time.perf_counter() - started)
    return round(statistics.median(taken), 3)


def tree_digest(site: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in site.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(site)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def timed(what: object, *args: object) -> tuple[object, float]:
    started = time.perf_counter()
    result = what(*args)  # type: ignore[operator]
    return result, round(time.perf_counter() - started, 3)


def round_trip(version: str, site: Path) -> dict[str, object]:
    """Take the guards out, put the fix in, take it out again."""
    target = find_target(str(site), FIX)
    released = check(FIX, target).status_before
    row: dict[str, object] = {"version": version, "released": str(released)}
    if released != "fixed":
        row["changed_by_apply"] = list(apply(FIX, target).changed_files)
        return row
    take_guards_out(site)
    before = tree_digest(site)
    row["guards_out"] = str(check(FIX, target).status_before)
    row["diff_lines"] = diff(FIX, target).diff.count("\n")
    applied, row["apply_s"] = timed(apply, FIX, target)
    row["after_apply"] = str(applied.status_after)  # type: ignore[attr-defined]
    _, row["revert_s"] = timed(revert, FIX, target)
    row["same_bytes_after_revert"] = tree_digest(site) == before
    return row


def measure(site: Path, repeat: int) -> dict[str, object]:
    """Time the look at one released tree."""
    python = sys.executable
    look = seconds([python, "-c", CHECK, str(site)], repeat)
    grep = seconds(["grep", "-rl", "--include=*.py", "logical_topk_ready", str(site)], repeat)
    libcst = seconds([python, "-c", WITH_LIBCST, str(site)], repeat)
    return {
        "python_files": sum(1 for _ in site.rglob("*.py")),
        "status_s": look,
        "grep_s": grep,
        "libcst_s": libcst,
        "status_to_grep": round(look / grep, 2),
        "libcst_to_status": round(libcst / look, 2),
        "list_s": seconds([python, "-c", LIST], repeat),
        "bare_python_s": seconds([python, "-c", NOTHING], repeat),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="+", default=VERSIONS)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="capdoctor-bench-") as folder:
        for version in options.versions:
            site = unpack("vllm", version, Path(folder) / version)
            times = measure(site, options.repeat)
            print(json.dumps({**round_trip(version, site), **times}))


if __name__ == "__main__":
    main()
