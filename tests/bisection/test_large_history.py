"""A hundred thousand commits are planned in seconds and in little memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.git_repo import Commit, build_repository

COUNT = 100_000
SECONDS, MEGABYTES = 5.0, 500.0
SCRIPT = """
import sys, time
from pathlib import Path
from capdoctor.bisection import BisectRequest, Silent, bisect
from capdoctor.bisection.observation import Observation, Saw

class Planned(Silent):
    def testing(self, what):
        if self.left is None:
            self.left = time.monotonic()
    left = None

class Probe:
    name = "stub"
    def check(self, mirror, sha): pass
    def run(self, place):
        import subprocess
        at = ["git", "-C", str(place.mirror.folder), "show", "-s", "--format=%s", place.sha]
        number = int(subprocess.run(at, capture_output=True, check=True).stdout[1:])
        saw = Saw.CRASH if number >= {culprit} else Saw.CLEAN
        return Observation(saw, "s1:a" if saw is Saw.CRASH else None)

begin = time.monotonic()
listener = Planned()
request = BisectRequest({repo!r}, "first", "main", confirm=1)
result = bisect(request, Probe(), listener=listener, work_dir=Path({work!r}))
# Not ru_maxrss: it counts the parent's memory between fork and exec.
status = Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
print(result.culprit.title, listener.left - begin, peak, result.runs)
"""


def test_planning_takes_under_five_seconds_and_500_mb(tmp_path: Path) -> None:
    repo, work = str(tmp_path / "repo"), str(tmp_path / "work")
    commits = [Commit({"vllm/__init__.py": "0", "docs/x": "0"}, "c0")]
    for number in range(1, COUNT):
        path = "docs/x" if number % 3 == 0 else "vllm/__init__.py"
        commits.append(Commit({path: f"{number}"}, f"c{number}"))
    build_repository(tmp_path / "repo", commits, tags={"first": 0}, checkout=False)
    culprit = 77_777
    script = SCRIPT.format(repo=repo, work=work, culprit=culprit)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.returncode == 0, done.stderr
    title, planned, peak, runs = done.stdout.split()
    assert title == f"c{culprit}"
    assert float(planned) < SECONDS
    assert float(peak) < MEGABYTES
    assert int(runs) <= 2 + 17
