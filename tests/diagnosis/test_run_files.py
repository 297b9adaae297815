"""What lies beside the log of a run counts with it; beside any other log nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose, diagnose_all
from capdoctor.diagnosis.run_files import MARK, run_of, runs_in
from tests.diagnosis.trace_samples import LOST, REFUSED, log_of

SAID = (
    "[16:21:14.4][140][CUDA][E] Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from"
    " cuMemHostAlloc\n"
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", log_of(REFUSED))


def make_run(folder: Path, log: str) -> Path:
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    (folder / "engine.log").write_text(log)
    (folder / "driver.log").write_text(SAID)
    (folder / "outcome.json").write_text('{"error": "RuntimeError: CUDA error: out of memory"}')
    return folder


def test_the_folder_of_a_run_is_its_log_and_what_the_driver_said(run: Path) -> None:
    [(name, found)] = diagnose_all(run)
    assert name == "engine.log"
    assert any("cuMemHostAlloc" in item.text for item in found.evidence)
    assert diagnose(run / "engine.log") == found


def test_the_log_alone_is_the_log_with_the_same_beside_it(run: Path) -> None:
    [(name, found)] = diagnose_all(run / "engine.log")
    assert name == str(run / "engine.log")
    assert any(item.source == "driver_log" for item in found.evidence)


def test_the_folder_of_several_runs_is_each_of_their_logs(tmp_path: Path) -> None:
    top = tmp_path / "top"
    make_run(top / "run-1", log_of(REFUSED))
    make_run(top / "run-2", log_of(LOST))
    (top / MARK).touch()
    (top / "overlay").mkdir()
    names = [name for name, _ in diagnose_all(top)]
    assert names == ["run-1/engine.log", "run-2/engine.log"]


def test_a_folder_that_no_run_wrote_is_read_as_it_was(run: Path) -> None:
    (run / MARK).unlink()
    found = dict(diagnose_all(run))
    assert {"engine.log", "driver.log", "outcome.json"} <= found.keys()
    assert not any(item.source == "driver_log" for item in found["engine.log"].evidence)


def test_another_log_in_the_folder_of_a_run_stands_alone(run: Path) -> None:
    (run / "other.log").write_text(log_of(REFUSED))
    assert run_of(run / "other.log") is None
    assert not any(item.source == "driver_log" for item in diagnose(run / "other.log").evidence)


def test_a_run_without_a_log_is_no_run(tmp_path: Path) -> None:
    (tmp_path / MARK).touch()
    assert runs_in(tmp_path) == ()
    assert run_of(tmp_path / "engine.log") is None
    assert runs_in(tmp_path / "none") == ()
    assert run_of(Path("nul\0/engine.log")) is None
