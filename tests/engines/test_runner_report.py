"""What the runner notes, read while it is being written."""

from __future__ import annotations

from pathlib import Path

from capdoctor.engines.in_target.start_vllm import Report
from capdoctor.engines.runner_report import RunnerReport


def test_the_newest_step_is_read(tmp_path: Path) -> None:
    path = tmp_path / "runner.json"
    read, write = RunnerReport(path), Report(str(path))
    assert read.step is None
    write.note("imported", version="0.33.0")
    assert read.step == "imported"
    write.note("ready", resolved={"mode": object})
    assert read.step == "ready"
    assert read.facts["version"] == "0.33.0"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_report_is_none_yet(tmp_path: Path) -> None:
    (tmp_path / "runner.json").write_text("{")
    assert RunnerReport(tmp_path / "runner.json").step is None
