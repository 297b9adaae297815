"""Run capdoctor as a user does: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def capdoctor(
    *arguments: str | Path,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Give the finished process; its streams are decoded with replacement."""
    done = subprocess.run(
        [sys.executable, "-m", "capdoctor", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, **(env or {})},
        timeout=timeout,
    )
    return subprocess.CompletedProcess(
        done.args,
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    """Give the one JSON object on stdout."""
    return json.loads(done.stdout)


def assert_refused(done: subprocess.CompletedProcess[str], code: int) -> None:
    """One sentence, one hint, the code of the contract, an empty stdout and no traceback."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    if code == 3:
        lines = done.stderr.strip().splitlines()
        assert lines[-2].startswith("capdoctor: "), done.stderr
        assert lines[-1].startswith("hint: "), done.stderr
