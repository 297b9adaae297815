"""Parts of the measurement of seconds to a verdict: timing a start, reading samples, the table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.plain_start import IMPORTED, READY, wait_until_ready
from bench.time_to_verdict import OURS, PLAIN, SERIES, SINGLE, main, table
from tests.gpu.lean.where_time_goes import SAMPLER, spans
from tests.helpers.fake_engine import LINES

OWN = "/x/site-packages/vllm/v1/core.py"
SAMPLES = "".join(
    f"{100 + number / 5:.2f}\t<string>:<module>|{OWN}:start|{inner}\n"
    for number, inner in enumerate(
        [f"{OWN}:load"] * 5 + ["/x/site-packages/torch/a.py:run"] * 5 + [f"{OWN}:load"]
    )
)


def test_neighbouring_samples_of_one_outline_are_one_span() -> None:
    first, second, summed = spans(SAMPLES)
    assert (first["what"], first["seconds"]) == ("v1/core.py:start > v1/core.py:load", 1.0)
    assert second["what"] == "v1/core.py:start"
    assert second["inside"] == {"v1/core.py:start > torch/a.py:run": 1.0}
    assert summed == {"imports": {}}


@pytest.mark.parametrize("text", ["", "no tab\n", "1.0\ta:b\n", "1.0\ta:b\n1.2\tcut sho"])
def test_samples_that_were_cut_short_are_read_as_far_as_they_go(text: str) -> None:
    assert spans(text) == [{"imports": {}}]


def test_the_sampler_looks_into_children_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SAMPLER)
    code = "import os, time\nif os.fork(): os.wait()\ntime.sleep(0.7)"
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "LEAN_SAMPLES": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=30)
    files = list(tmp_path.glob("*.txt"))
    assert len(files) == 2
    assert all("<string>:<module>" in file.read_text() for file in files)


def plain(tmp_path: Path, code: str, timeout: float = 30.0) -> dict[str, object]:
    command = [sys.executable, "-c", code]
    return wait_until_ready(command, dict(os.environ), tmp_path / "log", timeout)


def test_a_plain_start_is_timed_until_it_is_ready(tmp_path: Path) -> None:
    says = [IMPORTED, LINES["weights"], LINES["profile_run"], READY]
    code = f"import time\nfor line in {says!r}:\n print(line, flush=True); time.sleep(0.2)\n"
    found = plain(tmp_path, code + "time.sleep(60)")
    assert found["outcome"] == "ready"
    stages = found["stages"]
    assert isinstance(stages, dict)
    assert list(stages) == ["import", "config", "weights", "profile_run"]
    assert READY in (tmp_path / "log").read_text()


def test_a_plain_start_leaves_no_process(tmp_path: Path) -> None:
    code = f"import os, sys, time\nprint(os.fork() and {READY!r}, flush=True)\ntime.sleep(60)"
    plain(tmp_path, code)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert READY not in entry.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import time; time.sleep(60)"])
def test_a_plain_start_that_does_not_come_to_an_end_says_so(tmp_path: Path, code: str) -> None:
    assert "not ready" in str(plain(tmp_path, code, timeout=1.0)["failed"])


def test_ways_are_compared_with_plain_under_the_same_caches() -> None:
    def run(way: str, label: str, seconds: float) -> dict[str, object]:
        return {"way": way, "label": label, "seconds": seconds}

    rows = table(
        [
            run(PLAIN.name, "cold", 100.0),
            run(SERIES.name, "cold", 30.0),
            run(PLAIN.name, "warm", 50.0),
            run(SERIES.name, "warm", 10.0),
            run(SERIES.name, "warm", 20.0),
            run(SERIES.name, "warm", 90.0),
            {"way": OURS.name, "label": "warm", "failed": "x", "seconds": 1.0},
        ]
    )
    ratios = {(row["way"], row["label"]): row["times_plain"] for row in rows}
    assert ratios[SERIES.name, "cold"] == 0.3
    assert ratios[SERIES.name, "warm"] == 0.4
    assert ratios[OURS.name, "warm"] is None


def test_ways_have_names_of_their_own() -> None:
    names = [PLAIN.name, SERIES.name, *SINGLE]
    assert len(set(names)) == len(names)


def test_without_time_nothing_is_started_and_the_answer_is_no(tmp_path: Path) -> None:
    assert main([str(tmp_path), "--budget", "0"]) == 1
