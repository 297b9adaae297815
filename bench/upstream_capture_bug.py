"""Two capture bugs of aiter's history: found on the tree before the fix, gone on the tree after.

    python bench/upstream_capture_bug.py CLONE [--out bench/results/upstream_capture_bug.json]

CLONE is a git clone of ROCm/aiter. The attention package is taken out of the four commits into
a temporary folder, and `capdoctor check` runs its decode entry point with Triton replaced by a
stand-in: no GPU, no ROCm, no Triton.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "aiter/ops/triton/_triton_kernels/flash_attn_triton_amd"
# What makes the operator safe to capture, and which of the cases below it is about.
FIXES = {
    "#2096 cache update without reading lengths back": ("feff8dfbf3", "captured_append"),
    "#2764 paged cache without reading lengths back": ("9bab8388c3", "captured_paged"),
}
CASES = '''
"""Decode attention with a cache: a new token appended, and a paged cache."""

import torch
from flash_attn_triton_amd.fwd_decode import attention_forward_decode_triton_impl as attention

BATCH, HEADS, DIM, LENGTH, BLOCK = 2, 4, 64, 32, 16
Q = torch.randn(BATCH, 1, HEADS, DIM, device="cuda", dtype=torch.float16)
OUT = torch.empty_like(Q)
LSE = torch.empty(BATCH, HEADS, 1, device="cuda")
LENGTHS = torch.full((BATCH,), 5, device="cuda", dtype=torch.int32)
NEW = torch.randn(BATCH, 1, HEADS, DIM, device="cuda", dtype=torch.float16)
CACHE = torch.zeros(BATCH, LENGTH, HEADS, DIM, device="cuda", dtype=torch.float16)
PAGES = torch.zeros(BATCH * 2, BLOCK, HEADS, DIM, device="cuda", dtype=torch.float16)
TABLE = torch.arange(BATCH * 2, device="cuda", dtype=torch.int32).view(BATCH, 2)


def run(key_cache, new, table):
    attention(
        Q, key_cache, key_cache.clone(), new, new, OUT, LSE, 0.125, True, -1, -1, None, "bshd",
        LENGTHS, None, table,
    )


def captured_append():
    run(CACHE, NEW, None)


def captured_paged():
    run(PAGES, None, TABLE)
'''


def extract(clone: Path, commit: str, into: Path) -> None:
    """Lay the attention package of a commit out, beside the file with the cases."""
    command = ["git", "-C", str(clone), "archive", commit, PACKAGE]
    done = subprocess.run(command, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(into / "raw", filter="data")
    (into / "raw" / PACKAGE).rename(into / "flash_attn_triton_amd")
    (into / "cases.py").write_text(CASES, encoding="utf-8")


def check(folder: Path, case: str) -> dict[str, Any]:
    """Run the checker as a user does."""
    command = [sys.executable, "-m", "capdoctor", "check", f"cases.py::{case}", "--json"]
    command += ["--as-torch", "2.11", "--stub", "triton", "--stub", "aiter"]
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    answer = json.loads(done.stdout)
    return {
        "exit": done.returncode,
        "seconds": round(time.perf_counter() - begin, 1),
        "findings": [
            {
                "rule": finding["rule"],
                "at": f"{finding['file']}:{finding['line']}",
                "function": finding["function"],
                "would_raise": [
                    finding["would_raise"]["type"],
                    finding["would_raise"]["code"],
                    finding["would_raise"]["message"].splitlines()[0],
                ],
            }
            for finding in answer["findings"]
        ],
        "unknown": answer["covered"]["unknown"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    answer: dict[str, Any] = {}
    for fix, (commit, case) in FIXES.items():
        answer[fix] = {"commit": commit}
        for when, revision in (("before", f"{commit}^"), ("after", commit)):
            with tempfile.TemporaryDirectory() as folder:
                extract(options.clone, revision, Path(folder))
                answer[fix][when] = check(Path(folder), case)
    text = json.dumps(answer, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    told = [fix["before"]["exit"] == 1 and fix["after"]["exit"] == 0 for fix in answer.values()]
    sys.exit(0 if all(told) else 1)


if __name__ == "__main__":
    main()
