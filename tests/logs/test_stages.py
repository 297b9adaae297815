"""The stage tracker, fed live."""

from __future__ import annotations

import itertools

import pytest

from capdoctor.logs import StageTracker, read_text
from capdoctor.logs.markers import markers
from capdoctor.model import STAGE_ORDER, Stage
from tests.logs import mutations as m


def followed(data: bytes) -> tuple[StageTracker, list[Stage]]:
    tracker = StageTracker()
    stages = []
    for line in data.decode("utf-8", "replace").split("\n"):
        tracker.feed(line)
        stages.append(tracker.current)
    return tracker, [stage for stage, _ in itertools.groupby(stages)]


def test_real_start_of_the_v2_runner_passes_every_stage() -> None:
    tracker, stages = followed(m.corpus("real-vllm030-h200-clean-piecewise.log"))
    assert stages == [
        Stage.CONFIG, Stage.DEVICE_INIT, Stage.WEIGHTS, Stage.PROFILE_RUN,
        Stage.PROFILE_CUDAGRAPH_MEMORY, Stage.KV_CACHE, Stage.WARMUP, Stage.CAPTURE,
        Stage.WARMUP, Stage.SERVING, Stage.SHUTDOWN,
    ]  # fmt: skip
    assert tracker.passed == frozenset(STAGE_ORDER) - {Stage.SHUTDOWN}
    assert tracker.engine == "vllm"


def test_stage_that_an_engine_lacks_has_passed_when_a_later_one_begins() -> None:
    tracker = StageTracker()
    for line in m.corpus("real-vllm032-cpu-clean-scary.log").decode().split("\n"):
        tracker.feed(line)
        if tracker.current is Stage.KV_CACHE:
            assert tracker.has_passed(Stage.PROFILE_CUDAGRAPH_MEMORY)
            assert not tracker.has_passed(Stage.CAPTURE)
    assert tracker.has_passed(Stage.CAPTURE)


def test_slow_rank_does_not_lead_back() -> None:
    tracker = StageTracker()
    tracker.feed("(Worker_TP0 pid=1) INFO 01-01 00:00:00 [r.py:1] Model loading took 1 GiB")
    mark = tracker.feed(
        "(Worker_TP1 pid=2) INFO 01-01 00:00:00 [r.py:1] Starting to load model x..."
    ).mark
    assert tracker.current is Stage.PROFILE_RUN
    assert mark is not None
    assert (mark.stage, mark.reached, mark.stream.rank) == (Stage.WEIGHTS, Stage.PROFILE_RUN, 1)


def test_progress_of_the_capture_bar_comes_from_overwritten_text() -> None:
    tracker = StageTracker()
    tracker.feed("INFO 01-01 00:00:00 [w.py:1] Available KV cache memory: 1 GiB")
    progress = tracker.feed(
        "(EngineCore pid=1) \rCapturing CUDA graphs (decode, FULL):   0%| | 0/35 [00:00<?]"
        "\rCapturing CUDA graphs (decode, FULL):   3%| | 1/35 [00:00<?]\r"
    )
    assert progress.bar is not None
    assert (progress.bar.done, progress.bar.total, progress.bar.mode) == (1, 35, "decode, FULL")
    assert progress.bar.stream.name == "EngineCore"
    assert tracker.current is Stage.CAPTURE


def test_bar_with_nothing_before_it_is_not_certain() -> None:
    mark = StageTracker().feed("Capturing CUDA graphs (FULL):   0%| | 0/35 [00:00<?]").mark
    assert mark is not None
    assert (mark.stage, mark.certain) == (Stage.CAPTURE, False)


def test_web_server_of_sglang_is_up_before_the_engine_is() -> None:
    tracker = StageTracker()
    tracker.feed("[2025-07-29 18:12:01] server_args=ServerArgs(model_path='x')")
    tracker.feed("[2025-07-29 18:14:45] INFO:     Application startup complete.")
    assert tracker.current is Stage.CONFIG
    tracker.feed("[2025-07-29 18:14:51] The server is fired up and ready to roll!")
    assert tracker.current is Stage.SERVING


@pytest.mark.parametrize("marker", markers(), ids=lambda marker: marker.id)
def test_every_marker_is_found_by_each_of_its_texts(marker: object) -> None:
    from capdoctor.logs.markers import Marker, find_marker

    assert isinstance(marker, Marker)
    for text in marker.texts:
        found = find_marker(f"(EngineCore pid=1) INFO 01-01 00:00:00 [x.py:1] {text}")
        assert found is not None
        assert found.id == marker.id


SERVES = [
    "INFO 10-20 03:20:01 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s",
    'INFO:     10.0.0.7:33496 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "[2026-04-07 13:24:13 TP0] Decode batch, #running-req: 10, #token: 485248",
]


@pytest.mark.parametrize("line", SERVES)
def test_log_whose_begin_is_lost_was_ready_when_it_answers(line: str) -> None:
    (run,) = read_text(line + "\nRuntimeError: CUDA error: unspecified launch failure\n").runs
    assert run.ready is not None


@pytest.mark.parametrize("line", SERVES)
def test_answers_of_another_server_do_not_end_a_start_up(line: str) -> None:
    begin = "INFO 10-20 03:19:01 [gpu_model_runner.py:1] Starting to load model x...\n"
    (run,) = read_text(begin + line + "\nRuntimeError: CUDA error: invalid argument\n").runs
    assert run.ready is None
    assert run.stage_at(3) is Stage.WEIGHTS
