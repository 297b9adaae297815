"""One process under control: output, stages, ends. The engine is a fake, the process is real."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from capdoctor.engines.control import KeptEngine, start_order
from capdoctor.engines.ended import Limits
from capdoctor.engines.interrupts import Interrupts
from capdoctor.engines.listener import Quiet
from capdoctor.engines.rundir import RunFolder
from capdoctor.engines.runlog import RunLog
from capdoctor.engines.watch import EngineWatch
from capdoctor.model import Stage
from tests.engines.support import PATIENT, Recorder, marked_processes, wait_until, watch_fake


def test_an_exit_code_is_reported_with_the_stage_it_came_in(tmp_path: Path) -> None:
    ended = watch_fake(tmp_path, "stage", "config", "stage", "weights", "exit", "7")
    assert ended.how == "exited"
    assert ended.stage is Stage.WEIGHTS
    main = next(gone for gone in ended.departures if gone.pid == ended.main_pid)
    assert os.waitstatus_to_exitcode(main.status or 0) == 7
    assert [span.name for span in ended.spans] == [Stage.IMPORT, Stage.CONFIG, Stage.WEIGHTS]
    assert ended.spans[-1].end is None
    assert ended.spans[0].end is not None


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGTERM"])
def test_a_death_by_signal_is_told_from_an_exit(tmp_path: Path, name: str) -> None:
    ended = watch_fake(tmp_path, "die", name)
    main = next(gone for gone in ended.departures if gone.pid == ended.main_pid)
    assert os.waitstatus_to_exitcode(main.status or 0) == -signal.Signals[name]


def test_megabytes_on_both_streams_are_read_without_a_deadlock(tmp_path: Path) -> None:
    ended = watch_fake(tmp_path, "flood", "both", "8", "flood", "err", "4", "exit", "1")
    assert ended.how == "exited"
    log = RunFolder(tmp_path).log.read_bytes()
    assert log.count(b" out x") == 8 * 1024
    assert log.count(b" err x") == 12 * 1024
    timing = RunFolder(tmp_path).timing.read_bytes().splitlines()
    assert len(timing) == log.count(b"\n")


def test_lines_of_one_stream_stay_in_order_and_whole(tmp_path: Path) -> None:
    watch_fake(tmp_path, "flood", "both", "2")
    log = RunFolder(tmp_path).log.read_text().splitlines()
    for stream in ("out", "err"):
        numbers = [int(line.split()[0]) for line in log if f" {stream} " in line]
        assert numbers == list(range(2048))


def test_the_timing_file_says_which_stream_each_line_came_from(tmp_path: Path) -> None:
    watch_fake(tmp_path, "say", "one", "sleep", "0.2", "err", "two", "sleep", "0.2", "say", "three")
    rows = [row.split("\t") for row in RunFolder(tmp_path).timing.read_text().splitlines()]
    assert RunFolder(tmp_path).log.read_text() == "one\ntwo\nthree\n"
    assert [stream for _, stream in rows] == ["out", "err", "out"]
    assert sorted(float(row[0]) for row in rows) == [float(row[0]) for row in rows]


def test_text_without_a_newline_at_the_end_is_kept(tmp_path: Path) -> None:
    watch_fake(tmp_path, "half", "no newline", "exit", "1")
    assert RunFolder(tmp_path).log.read_text() == "no newline\n"


def test_a_capture_bar_is_followed_while_it_is_being_overwritten(tmp_path: Path) -> None:
    heard = Recorder()
    watch_fake(tmp_path, "stage", "profile_run", "bar", "5", listener=heard)
    assert [bar.done for bar in heard.bars][:3] == [0, 1, 2]
    assert {bar.total for bar in heard.bars} == {5}
    assert Stage.PROFILE_CUDAGRAPH_MEMORY in heard.stages


def test_a_stage_that_has_passed_ends_the_run(tmp_path: Path) -> None:
    limits = Limits(Stage.CONFIG, 30.0, 300.0)
    ended = watch_fake(tmp_path, "stage", "config", "stage", "device_init", "hang", limits=limits)
    assert ended.how == "stopped_after_stage"
    assert ended.spans[-1].end is not None


def test_a_stage_that_the_engine_lacks_has_passed_when_a_later_one_begins(tmp_path: Path) -> None:
    limits = Limits(Stage.PROFILE_CUDAGRAPH_MEMORY, 30.0, 300.0)
    actions = ("stage", "weights", "stage", "kv_cache", "hang")
    ended = watch_fake(tmp_path, *actions, limits=limits)
    assert ended.how == "stopped_after_stage"
    assert Stage.PROFILE_CUDAGRAPH_MEMORY not in [span.name for span in ended.spans]


def test_the_wanted_stage_does_not_end_the_run_before_it_is_over(tmp_path: Path) -> None:
    limits = Limits(Stage.WEIGHTS, 2.0, 300.0)
    ended = watch_fake(tmp_path, "stage", "weights", "hang", limits=limits)
    assert ended.how == "timed_out"


def test_a_silent_and_idle_engine_hangs(tmp_path: Path) -> None:
    started = time.monotonic()
    limits = Limits(None, 60.0, 2.0)
    ended = watch_fake(tmp_path, "stage", "weights", "hang", limits=limits)
    assert ended.how == "hung"
    assert "no output and no CPU time" in ended.why
    assert time.monotonic() - started < 15


def test_an_engine_that_repeats_its_complaint_hangs_all_the_same(tmp_path: Path) -> None:
    ended = watch_fake(tmp_path, "stage", "weights", "nag", limits=Limits(None, 60.0, 4.0))
    assert ended.how == "hung"


def test_a_busy_engine_does_not_hang(tmp_path: Path) -> None:
    ended = watch_fake(tmp_path, "stage", "weights", "spin", limits=Limits(None, 4.0, 1.5))
    assert ended.how == "timed_out"


def test_a_hung_python_process_leaves_its_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    watch_fake(tmp_path, "say", "alive", "hang", limits=Limits(None, 60.0, 1.5))
    folder = RunFolder(tmp_path)
    assert folder.log.read_text() == "alive\n"
    assert "most recent call first" in folder.after.read_text()


def test_a_worker_may_speak_after_the_front_end_died(tmp_path: Path) -> None:
    watch_fake(tmp_path, "fork-late", "exit", "1")
    assert "the worker says why, late" in RunFolder(tmp_path).log.read_text()


def test_every_kind_of_descendant_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = "CAPDOCTOR_RUN=every-kind"
    monkeypatch.setenv("FAKE_SEGMENTS", "everykind")
    actions = ("files", "segment", "orphan", "deaf", "children", "stage", "config", "hang")
    limits = Limits(Stage.IMPORT, 30.0, 300.0)
    ended = watch_fake(tmp_path, *actions, limits=limits, marker=marker)
    assert ended.left == ()
    assert len(ended.departures) >= 6
    assert marked_processes(marker) == []
    assert not (tmp_path / "tmp").exists()
    assert list(Path("/dev/shm").glob("psm_everykind*")) == []


def test_a_listener_that_raises_ends_the_engine(tmp_path: Path) -> None:
    class Broken(Recorder):
        def stage_began(self, stage: Stage, _seconds: float) -> None:
            if stage is Stage.CONFIG:
                raise ZeroDivisionError

    marker = "CAPDOCTOR_RUN=broken-listener"
    with pytest.raises(ZeroDivisionError):
        watch_fake(
            tmp_path, "children", "stage", "config", "hang", listener=Broken(), marker=marker
        )
    assert marked_processes(marker) == []
    assert not (tmp_path / "tmp").exists()


def test_a_killed_keeper_is_noticed_and_its_engine_does_not_outlive_it(tmp_path: Path) -> None:
    marker = "CAPDOCTOR_RUN=lost-keeper"

    class Killer(Recorder):
        def line_printed(self, line: str, _seconds: float) -> None:
            keeper = _parent(int(line.split("pid=")[1].split(")", maxsplit=1)[0]))
            os.kill(keeper, 9)

    actions = ("children", "segment", "stage", "config", "hang")
    ended = watch_fake(tmp_path, *actions, listener=Killer(), marker=marker)
    assert ended.how == "lost"
    assert wait_until(lambda: marked_processes(marker) == [])
    assert not (tmp_path / "tmp").exists()


def test_a_command_that_cannot_be_executed_is_no_crash(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    order = start_order(["/no/such/engine"], dict(os.environ), "A=b", tmp_path / "tmp")
    with RunLog(folder) as log, Interrupts() as interrupts:
        engine = KeptEngine(order, folder.keeper_log)
        ended = EngineWatch(engine, log, PATIENT, Quiet(), lambda _stage: None).run(interrupts)
    assert ended.failed_to_start is not None
    assert "No such file" in ended.failed_to_start


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
