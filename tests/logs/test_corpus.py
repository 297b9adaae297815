"""The logs of the corpus: what must be findable in each is found."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from capdoctor.logs import LinkKind, ParsedLog, Run, read_log
from capdoctor.model import Stage
from tests.logs.mutations import CORPUS, LOGS


def expected(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.with_suffix("").with_suffix(".expect.json").read_text())
    return found


def the_run(log: ParsedLog) -> Run:
    assert len(log.runs) == 1
    return log.runs[0]


@pytest.mark.parametrize("path", LOGS, ids=lambda p: p.stem)
def test_root_error_and_frame_are_among_what_was_read(path: Path) -> None:
    want, run = expected(path), the_run(read_log(path))
    if want["error_type"] is None:
        assert all(n.record and n.record.level == "WARNING" for n in run.nodes)
        return
    types = {n.type for n in run.nodes} | {d.signal for d in run.deaths}
    types |= {"SIGABRT"} if run.events else set()
    assert want["error_type"] in types
    if want["root_frame"] is None:
        return
    place, _, function = want["root_frame"].partition(" ")
    frames = {(f"{f.path}:{f.line}", f.function) for n in run.nodes for f in n.frames}
    native = {f"{e.file}:{e.lineno}" for e in run.events}
    assert (place, function) in frames or any(n.endswith(place) for n in native)


WITH_LINE = [path for path in LOGS if expected(path).get("error_line")]
# 41807 crashes in the profiling of graphs before any bar: only its frames tell the stage.
MARKS_TELL = [path for path in LOGS if path.stem != "vllm-41807-diffkv-shape"]


@pytest.mark.parametrize("path", WITH_LINE, ids=lambda p: p.stem)
def test_error_line_is_the_line_of_a_finding(path: Path) -> None:
    want, log = expected(path), read_log(path)
    text = want["error_line"]
    lines = path.read_bytes().split(b"\n")
    run = the_run(log)
    at = {n.error_line for n in run.nodes} | {e.line for e in run.events}
    at |= {line for n in run.nodes for line in range(n.line, n.last_line + 1)}
    hits = [i for i, line in enumerate(lines, 1) if text.encode() in line]
    assert set(hits) & at


@pytest.mark.parametrize("path", MARKS_TELL, ids=lambda p: p.stem)
def test_stage_before_the_first_error_is_right_where_marks_alone_can_tell(path: Path) -> None:
    want, run = expected(path), the_run(read_log(path))
    if want["stage"] == "serving":
        assert run.ready is not None
        return
    first = min(n.line for n in run.nodes)
    stream = run.nodes[0].stream
    assert run.stage_at(first, stream) in {Stage(want["stage"]), None}
    if want["stage"] != "import":
        assert run.stage_at(first, stream) == Stage(want["stage"])


def test_capture_failure_is_a_chain_with_the_cause_first() -> None:
    run = the_run(read_log(CORPUS / "sglang-7918-compile-in-capture.log"))
    first, echo, wrapped = run.nodes[:3]
    assert "not permitted when stream is capturing" in first.message
    assert echo.linked(LinkKind.CONTEXT) == first.index
    assert wrapped.linked(LinkKind.CONTEXT) == echo.index
    assert first.stream.name == "TP3"
    assert first.stream.rank == 3
    assert wrapped.type == "Exception"


def test_note_that_repeats_the_traceback_is_a_copy() -> None:
    run = the_run(read_log(CORPUS / "vllm-57759-engram-side-stream.log"))
    assert run.nodes[1].copy_of == 0
    assert run.nodes[0].record is run.nodes[1].record
    # The same error of another rank is no copy.
    assert run.nodes[2].copy_of is None
    assert run.nodes[2].stream.rank == 3


def test_traceback_of_a_subprocess_is_quoted_in_the_error_that_reports_it() -> None:
    run = the_run(read_log(CORPUS / "vllm-49804-cubin-mismatch.log"))
    cause, reporter, inner = run.nodes[:3]
    assert reporter.linked(LinkKind.CAUSE) == cause.index
    assert inner.linked(LinkKind.EMBEDDED) == reporter.index
    assert inner.message.startswith("flashinfer-cubin version")


def test_raw_traceback_of_a_named_process_is_a_copy_of_the_logged_one() -> None:
    run = the_run(read_log(CORPUS / "mineru-4350-ptxas.log"))
    assert run.nodes[1].process_name == "EngineCore_DP0"
    assert run.nodes[1].copy_of == 0
    assert "ptxas fatal" in run.nodes[0].message
    assert "Repro command" in run.nodes[1].message


def test_ctrl_c_is_an_interrupt_and_its_line_is_known() -> None:
    run = the_run(read_log(CORPUS / "vllm-19196-ctrl-c.log"))
    assert (run.interrupts[0].kind, run.interrupts[0].line) == ("ctrl_c", 29)
    assert [i.kind for i in run.interrupts].count("keyboard_interrupt") == 2


def test_native_line_names_file_line_and_text() -> None:
    run = the_run(read_log(CORPUS / "vllm-56180-custom-ar-invalid.log"))
    event = run.events[0]
    assert (event.kind, event.lineno, event.message) == ("native_check", 164, "invalid argument")
    assert event.file == "/workspace/csrc/custom_all_reduce.cuh"
    death = run.deaths[0]
    assert (death.source, death.process, death.exit_code) == ("vllm_worker", "VllmWorker-0", None)


def test_ray_prefix_inside_the_engine_prefix_names_worker_and_node() -> None:
    run = the_run(read_log(CORPUS / "vllm-30044-ima-capture.log"))
    worker = next(s for s in run.streams if s.pid == 230701)
    assert (worker.name, worker.ip) == ("RayWorkerWrapper", "10.0.0.11")


def test_v0_lines_without_the_bracket_are_records() -> None:
    run = the_run(read_log(CORPUS / "vllm-4432-nccl-uncaptured.log"))
    assert ("model_runner.py", 791) in {(c.file, c.lineno) for c in run.call_sites}
    assert run.versions[0].value == "0.4.0.post1"
    assert run.nodes[1].linked(LinkKind.CONTEXT) == 0


def test_capture_bar_tells_how_far_it_got_although_carriage_returns_overwrote_it() -> None:
    run = the_run(read_log(CORPUS / "vllm-57759-engram-side-stream.log"))
    bar = run.bar_before(10_000)
    assert bar is not None
    assert (bar.mode, bar.done, bar.total, bar.stage) == ("PIECEWISE", 7, 11, Stage.CAPTURE)


def test_the_bar_of_sglang_names_the_batch_size() -> None:
    run = the_run(read_log(CORPUS / "sglang-7918-compile-in-capture.log"))
    assert run.bars[-1].size == 160
    assert run.engine == "sglang"


def test_bars_before_the_kv_cache_measure_and_those_after_it_capture() -> None:
    run = the_run(read_log(CORPUS / "real-vllm030-h200-clean-piecewise.log"))
    order = [stage for stage, _ in itertools.groupby(mark.reached for mark in run.marks)]
    assert order == [
        Stage.CONFIG, Stage.DEVICE_INIT, Stage.WEIGHTS, Stage.PROFILE_RUN,
        Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.KV_CACHE, Stage.WARMUP, Stage.CAPTURE,
        Stage.WARMUP, Stage.SERVING, Stage.SHUTDOWN,
    ]  # fmt: skip
    assert [bar.stage for bar in run.bars].count(Stage.CAPTURE) == 2
