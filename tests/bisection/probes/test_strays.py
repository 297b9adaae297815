"""What a run leaves running is ended, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from capdoctor.bisection.probes.strays import end_strays, mark

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def _started(out: Path | None) -> subprocess.Popen[bytes]:
    env = {**os.environ, **(mark(out) if out else {})}
    return subprocess.Popen(SLEEP, env=env, start_new_session=True)


def test_only_processes_of_the_folder_are_ended(tmp_path: Path) -> None:
    ours = _started(tmp_path / "work" / "runs" / "001")
    others = [_started(tmp_path / "work2" / "runs" / "001"), _started(None)]
    try:
        assert end_strays(tmp_path / "work") == 1
        assert not psutil.pid_exists(ours.pid)
        assert all(other.poll() is None for other in others)
    finally:
        for process in (ours, *others):
            process.kill()
            process.wait()


def test_whoever_asks_is_never_ended(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from capdoctor.bisection.probes.strays import end_strays; "
        f"print(end_strays(Path({str(tmp_path)!r})))"
    )
    env = {**os.environ, **mark(tmp_path / "run")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
