"""Traces come with run folders of strangers: nothing in them may harm, whatever it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capdoctor.capture.tracer import read_trace
from capdoctor.diagnosis import diagnose
from capdoctor.diagnosis.run_files import MARK
from capdoctor.report.card import diagnosis_card
from capdoctor.report.json_text import document
from capdoctor.report.markdown import diagnosis_markdown
from capdoctor.report.sarif import sarif
from tests.diagnosis.trace_samples import LOST, log_of

INSTALLED = {"kind": "installed", "time": 1.0, "pid": 77, "process": "EngineCore"}
CALL = {
    "operation": "aten::_local_scalar_dense",
    "stack": [["/p/site-packages/vllm/a.py", 3, "f"]],
    "source": "x.item()",
    "number": 1,
    "thread_id": 140,
}
OFFENCE = {"kind": "offence", "how": "invalidated", "time": 2.0, "number": 1, "call": CALL}
OFFENCE["error"] = {"type": "torch.AcceleratorError", "message": "CUDA error: x", "code": 900}
ENDED = {"kind": "ended", "number": 1, "time": 3.0, "error": {"type": "E", "message": LOST}}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = ("kind", "time", "pid", "number", "call", "error", "earlier", "raised", "how", "threads")


def make_run(folder: Path, *lines: Any) -> Path:
    (folder / "trace").mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    (folder / "engine.log").write_text(log_of(LOST))
    text = "\n".join(json.dumps(line) if isinstance(line, dict) else line for line in lines)
    (folder / "trace/trace-77.jsonl").write_text(text, encoding="utf-8", errors="surrogatepass")
    return folder / "engine.log"


def shown(log: Path) -> str:
    """Show the answer in every form, and give them all."""
    found = diagnose(log)
    card = "\n".join(line.text for line in diagnosis_card(found))
    forms = [card, diagnosis_markdown(found), sarif({"a": found}), document("x/1", found)]
    return "\n".join(forms)


def test_a_sound_trace_beside_a_log_answers(tmp_path: Path) -> None:
    found = diagnose(make_run(tmp_path, INSTALLED, OFFENCE, ENDED))
    assert found.crash_class == "capture_host_sync"
    assert found.root_frame is not None
    assert found.root_frame.file == "vllm/a.py"


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "null",
        '"text"',
        "[" * 100_000,
        '{"kind": "offence", "time": ' + "9" * 5000 + "}",
        '{"kind": "installed", "time": NaN, "pid": 1}',
        {**OFFENCE, "time": "late"},
        {**OFFENCE, "number": [1]},
        {**OFFENCE, "number": 10**400},
        {**OFFENCE, "call": "text"},
        {**OFFENCE, "call": {"stack": "x", "operation": 7}},
        {**OFFENCE, "call": {"stack": [1, None, {}, ["a"], [1, "b", 2]]}},
        {**OFFENCE, "error": ["no"]},
        {**OFFENCE, "earlier": 3},
        {**OFFENCE, "threads": {"٣": "x", "1": []}},
        {**ENDED, "raised": "x"},
        {**ENDED, "raised": {"call": 1, "error": []}},
        {**ENDED, "number": {}},
        {"kind": "fault", "text": {"a": 1}},
        {**INSTALLED, "pid": {}, "process": []},
        {"kind": ["x"]},
    ],
    ids=range(22),
)
def test_a_line_of_another_form_is_passed_over(line: Any, tmp_path: Path) -> None:
    log = make_run(tmp_path, INSTALLED, line, OFFENCE, ENDED)
    shown(log)
    trace = read_trace(tmp_path / "trace")
    assert trace is not None
    assert trace.offences


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    changes=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(KEYS), JSON), max_size=4),
    cut=st.integers(0, 3000),
)
def test_no_trace_brings_the_reader_down(
    changes: list[tuple[int, str, Any]], cut: int, tmp_path: Path
) -> None:
    lines: list[dict[str, Any]] = [dict(INSTALLED), dict(OFFENCE), dict(ENDED)]
    for at, key, value in changes:
        lines[at][key] = value
    text = "\n".join(json.dumps(line) for line in lines)
    folder = tmp_path / "trace"
    folder.mkdir(exist_ok=True)
    (folder / "trace-77.jsonl").write_text(text[: len(text) - cut] if cut < len(text) else text)
    trace = read_trace(folder)
    if trace is not None:
        document("x/1", trace)


def test_text_of_strangers_reaches_no_screen_as_it_is(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202e</code>`|\ud800\x00\n# new"
    call = {**CALL, "operation": evil, "source": evil, "called_as": evil, "thread": evil}
    call["stack"] = [[evil, 3, evil]]
    log = make_run(
        tmp_path,
        {**INSTALLED, "process": evil},
        {**OFFENCE, "call": call, "earlier": call},
        ENDED,
        {"kind": "fault", "text": evil},
    )
    text = shown(log)
    for sign in ("\x1b", "\u202e", "\x00", "\ud800"):
        assert sign not in text
    text.encode("utf-8")


def test_an_endless_or_odd_file_is_not_waited_for(tmp_path: Path) -> None:
    log = make_run(tmp_path, INSTALLED, OFFENCE, ENDED)
    os.mkfifo(tmp_path / "trace/trace-1.jsonl")
    (tmp_path / "trace/trace-2.jsonl").symlink_to("/dev/zero")
    (tmp_path / "trace/trace-3.jsonl").mkdir()
    (tmp_path / "trace/trace-4.jsonl").symlink_to(tmp_path / "nowhere")
    with (tmp_path / "trace/trace-5.jsonl").open("wb") as file:
        file.truncate(1 << 33)
    assert diagnose(log).crash_class == "capture_host_sync"


@pytest.mark.parametrize("kind", ["fifo", "endless", "folder", "huge", "numbers"])
def test_a_drivers_log_of_another_kind_is_not_waited_for(kind: str, tmp_path: Path) -> None:
    log = make_run(tmp_path, INSTALLED, OFFENCE, ENDED)
    place = tmp_path / "driver.log"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "endless":
        place.symlink_to("/dev/zero")
    elif kind == "folder":
        place.mkdir()
    elif kind == "numbers":
        place.write_text(f"[1:2:3.4][{'9' * 5000}][CUDA][E] Returning {'9' * 5000} (X) from y\n")
    else:
        with place.open("wb") as file:
            file.truncate(1 << 33)
    assert diagnose(log).crash_class == "capture_host_sync"
