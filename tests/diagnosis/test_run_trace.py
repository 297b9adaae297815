"""The traces of a run, with files named as in its log."""

from __future__ import annotations

import json
from pathlib import Path

from capdoctor.diagnosis.run_trace import read_run_trace


def call(*files: str) -> dict[str, object]:
    return {"operation": "op", "stack": [[file, 3, "f"] for file in files]}


def test_files_of_an_overlay_and_of_a_checkout_are_named_from_the_package_on(
    tmp_path: Path,
) -> None:
    offence = {
        "kind": "offence",
        "how": "event_outside",
        "time": 1.0,
        "call": call("/run/overlay/vllm/v1/a.py", "/home/me/model.py"),
        "earlier": call("/opt/src/aiter/aiter/mla.py", "demo/sparse_mla.py"),
    }
    lines = [{"kind": "installed", "pid": 7, "time": 0.5}, offence]
    (tmp_path / "trace-7.jsonl").write_text("\n".join(map(json.dumps, lines)))
    trace = read_run_trace(tmp_path, None)
    assert trace is not None
    assert trace.first is not None
    assert [frame.file for frame in trace.first.call.stack] == ["vllm/v1/a.py", "/home/me/model.py"]
    assert trace.first.earlier is not None
    earlier = [frame.file for frame in trace.first.earlier.stack]
    assert earlier == ["aiter/mla.py", "demo/sparse_mla.py"]


def test_no_folder_is_no_trace(tmp_path: Path) -> None:
    assert read_run_trace(tmp_path / "none", None) is None
    assert read_run_trace(tmp_path, None) is None
