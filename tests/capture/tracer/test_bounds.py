"""Traces of strangers and of long runs: reading them ends, and what counts is still found."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from capdoctor.capture.tracer import read_trace, safe_lines
from capdoctor.capture.tracer.driver_lines import read_driver_log
from capdoctor.model import CaptureTrace

REFUSED = "[1][%d][CUDA][E] Returning %d (CUDA_ERROR_X) from %s\n"


def written(folder: Path, pid: int, *lines: dict[str, Any]) -> None:
    head = {"kind": "installed", "pid": pid, "time": 1.0, "process": "EngineCore"}
    text = "".join(json.dumps(line) + "\n" for line in (head, *lines))
    (folder / f"trace-{pid}.jsonl").write_text(text)


def offence(number: int, **more: Any) -> dict[str, Any]:
    call = {"operation": f"op{number}", "thread_id": 140, "number": number}
    line = {"kind": "offence", "how": "unseen", "number": number, "time": 1.0 + number}
    return {**line, "call": call, **more}


def read(folder: Path, log: Path | None = None) -> CaptureTrace:
    trace = read_trace(folder, log)
    assert trace is not None
    return trace


def test_a_flood_of_processes_threads_and_driver_lines_is_read_in_seconds(tmp_path: Path) -> None:
    for pid in range(40):
        threads = {str(1_000 * pid + one): "t" for one in range(100)}
        written(tmp_path, pid, *(offence(one, threads=threads) for one in range(50)))
    log = tmp_path / "driver.log"
    log.write_text("".join(REFUSED % (one % 900, 900, f"cuCall{one}") for one in range(40_000)))
    began = time.process_time()
    trace = read(tmp_path, log)
    assert time.process_time() - began < 10  # without bounds it was minutes
    assert trace.processes == 40
    assert len(trace.offences) == 1_000
    assert trace.first is not None
    assert trace.first.seconds == 0.0


def test_a_call_that_is_refused_again_and_again_is_one(tmp_path: Path) -> None:
    log = tmp_path / "driver.log"
    log.write_text(REFUSED % (1, 900, "cuA") * 5_000 + REFUSED % (2, 901, "cuB"))
    assert [(one.thread_id, one.code, one.api) for one in read_driver_log(log)] == [
        (1, 900, "cuA"),
        (2, 901, "cuB"),
    ]


def test_of_several_processes_the_earliest_offence_is_first(tmp_path: Path) -> None:
    written(tmp_path, 1, offence(9), offence(3))
    written(tmp_path, 2, offence(1))
    assert [one.call.operation for one in read(tmp_path).offences] == ["op1", "op3", "op9"]


def test_a_thread_of_another_process_is_not_blamed(tmp_path: Path) -> None:
    written(tmp_path, 1, offence(1, threads={"140": "MainThread"}))
    written(tmp_path, 2, offence(2, threads={"77": "uploader"}))
    log = tmp_path / "driver.log"
    log.write_text(REFUSED % (77, 900, "cuMemHostAlloc"))
    mine, theirs = read(tmp_path, log).offences
    assert (mine.kind, mine.call.operation) == ("unseen", "op1")
    assert (theirs.kind, theirs.call.operation) == ("other_thread", "cuMemHostAlloc")
    assert theirs.call.thread == "uploader"


def test_files_beyond_what_is_read_of_all_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(4):
        written(tmp_path, pid, offence(pid))
    size = (tmp_path / "trace-0.jsonl").stat().st_size
    monkeypatch.setattr(safe_lines, "_MOST_BYTES_OF_ALL", 2 * size)
    assert read(tmp_path).processes == 2


def suspect(operation: str, **more: Any) -> dict[str, Any]:
    call = {"operation": operation, "number": 1}
    return {"kind": "suspect", "time": 2.0, "number": 1, "call": call, **more}


ERROR = {"type": "RuntimeError", "message": "no"}


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([suspect("caught", error=ERROR), suspect("last", error=ERROR)], "last"),
        ([suspect("inner", error=ERROR), suspect("outer")], "inner"),
        ([suspect("first"), suspect("second")], "first"),
        ([suspect("first"), suspect("second", error=ERROR)], "second"),
    ],
)
def test_a_process_that_died_in_a_capture_names_what_raised_last(
    lines: list[dict[str, Any]], named: str, tmp_path: Path
) -> None:
    written(tmp_path, 1, *lines)
    (found,) = read(tmp_path).offences
    assert (found.kind, found.call.operation) == ("raised", named)
