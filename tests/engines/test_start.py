"""From an EngineSpec to a RunOutcome, with a Python that only claims to have vLLM."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.engines.start import run
from capdoctor.errors import CannotDo, Interrupted
from capdoctor.model import Diagnosis, EngineSpec, Outcome, RunFacts, RunOutcome, Stage
from tests.engines.support import (
    MODEL,
    Recorder,
    diagnose,
    make_fake_python,
    marked_processes,
    wait_until,
)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start(
    folder: Path, *actions: str, began: Callable[[], None] = lambda: None, **changes: object
) -> RunOutcome:
    """Run the fake engine through everything that is real; ``began`` is called at the start."""

    class Starter(Recorder):
        def run_began(self, _folder: Path, _title: str) -> None:
            began()

    python = make_fake_python(folder / "python", *actions)
    spec = EngineSpec("vllm", str(MODEL), python=python, out=folder / "out", timeout=60.0)
    spec = replace(spec, **changes)  # type: ignore[arg-type]
    return run(spec, diagnose=diagnose, listener=Starter())


@pytest.fixture
def short_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give an empty temporary folder of this test's own, with a path as short as TMPDIR needs."""
    folder = Path(tempfile.mkdtemp(prefix="cd-", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    folder.rmdir()  # fails if anything was left


def test_an_engine_that_gets_ready_has_started_and_is_ended(tmp_path: Path) -> None:
    answer = start(tmp_path, "stage", "config", "stage", "serving", "report", "ready", "hang")
    assert answer.outcome is Outcome.STARTED
    assert answer.diagnosis is None
    assert [span.name for span in answer.stages] == [Stage.IMPORT, Stage.CONFIG, Stage.SERVING]
    assert all(span.end is not None for span in answer.stages)
    assert answer.engine.version == "0.33.0"
    assert answer.engine.commit == "4ba787ec9"
    (front_end,) = answer.processes
    assert front_end.end == "SIGTERM (ended by capdoctor)"


def test_a_crash_is_diagnosed_with_what_the_controller_knows(tmp_path: Path) -> None:
    answer = start(tmp_path, "stage", "weights", "fail")
    assert answer.outcome is Outcome.CRASHED
    assert answer.diagnosis is not None
    assert answer.diagnosis.stage is Stage.WEIGHTS
    assert answer.diagnosis.fingerprint == "exited-1"
    assert "exit 1" in answer.reason
    assert answer.processes[-1].end == "exit 1"


def test_the_files_of_a_run_are_named_and_there(tmp_path: Path) -> None:
    answer = start(tmp_path, "stage", "weights", "fail")
    for path in answer.artifacts.values():
        assert Path(path).exists()
    written = json.loads(Path(answer.artifacts["json"]).read_text())
    assert written["schema"] == "capdoctor.repro/1"
    assert written["outcome"] == "crashed"
    assert written["artifacts"] == dict(answer.artifacts)
    assert "RuntimeError" in Path(answer.artifacts["log"]).read_text()
    assert not (tmp_path / "out/caches").exists()
    assert not (tmp_path / "out/keeper.log").exists()


def test_runs_lie_in_the_state_folder_unless_told_otherwise(tmp_path: Path) -> None:
    answer = start(tmp_path, "stage", "weights", "fail", out=None)
    assert Path(answer.artifacts["folder"]).is_relative_to(os.environ["XDG_STATE_HOME"])


def test_a_second_run_into_the_same_folder_replaces_the_first(tmp_path: Path) -> None:
    start(tmp_path, "say", "first", "fail")
    (tmp_path / "out/mine.txt").write_text("the user's")
    answer = start(tmp_path, "say", "second", "exit", "3")
    log = Path(answer.artifacts["log"]).read_text()
    assert "first" not in log
    assert "second" in log
    assert (tmp_path / "out/mine.txt").read_text() == "the user's"


def test_a_hang_and_a_timeout_are_diagnosed_as_such(tmp_path: Path) -> None:
    hung = start(tmp_path, "stage", "weights", "hang", hang_after=1.5)
    assert hung.outcome is Outcome.HUNG
    assert hung.diagnosis is not None
    assert hung.diagnosis.fingerprint == "hung-None"
    late = start(tmp_path, "stage", "weights", "hang", timeout=1.0)
    assert late.outcome is Outcome.HUNG
    assert late.diagnosis is not None
    assert late.diagnosis.fingerprint == "timed_out-None"
    assert "not ready after 1 s" in late.reason


def test_stopping_after_a_stage_is_no_crash(tmp_path: Path) -> None:
    answer = start(
        tmp_path, "stage", "weights", "stage", "kv_cache", "hang", stop_after=Stage.WEIGHTS
    )
    assert answer.outcome is Outcome.STOPPED_AFTER_STAGE
    assert answer.diagnosis is None


def test_what_the_runner_refuses_is_a_setup_failure(tmp_path: Path) -> None:
    with pytest.raises(CannotDo) as caught:
        start(tmp_path, "report", "refused", "exit", "64")
    assert caught.value.sentence == "told to refuse"
    assert "engine.log" in caught.value.hint


def test_an_engine_that_ends_well_without_starting_is_a_setup_failure(tmp_path: Path) -> None:
    with pytest.raises(CannotDo, match="without starting"):
        start(tmp_path, "say", "usage: vllm", "exit", "0")


def test_the_environment_is_isolated_and_short(tmp_path: Path) -> None:
    start(tmp_path, "fail")
    text = (tmp_path / "out/environment.json").read_text()
    variables = json.loads(text)["variables"]
    assert len(variables["TMPDIR"]) <= 70
    assert variables["VLLM_NO_USAGE_STATS"] == "1"
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert variables["CUDA_LOG_FILE"] == str(tmp_path / "out/driver.log")
    assert variables["VLLM_CACHE_ROOT"].startswith(str(tmp_path / "out"))


def test_what_the_user_set_wins_and_secrets_stay_out_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CACHE_ROOT", "/mine")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    start(tmp_path, "fail")
    text = (tmp_path / "out/environment.json").read_text()
    assert json.loads(text)["variables"]["VLLM_CACHE_ROOT"] == "/mine"
    assert "hf_secret" not in text


def test_an_interrupted_run_says_how_to_run_it_again(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)

    class Stopper(Recorder):
        def line_printed(self, _line: str, _seconds: float) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    python = make_fake_python(tmp_path / "python", "stage", "weights", "hang")
    arguments = ("--max-model-len", "512")
    spec = EngineSpec("vllm", str(MODEL), python=python, out=tmp_path, extra_args=arguments)
    with pytest.raises(Interrupted) as caught:
        run(spec, listener=Stopper())
    assert "SIGINT" in caught.value.sentence
    assert "weights" in caught.value.sentence
    assert caught.value.hint.startswith("capdoctor repro --model ")
    assert caught.value.hint.endswith("-- --max-model-len 512")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", SIGNALS)
def test_fifteen_interrupted_runs_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_tmp: Path, number: signal.Signals
) -> None:
    """With the other two signals and five real engines (tests/integration) these are fifty."""
    mark = f"fifteen{int(number)}x{os.getpid()}"
    monkeypatch.setenv("CAPDOCTOR_TEST_MARK", mark)
    monkeypatch.setenv("FAKE_SEGMENTS", mark)
    for attempt in range(15):
        stubborn = ("deaf",) if attempt % 5 == 0 else ()
        actions = ("files", "segment", "orphan", *stubborn, "children", "stage", "weights", "hang")
        delay = 0.02 + 0.06 * attempt
        began = time.monotonic()
        signals = threading.Timer(delay, os.kill, (os.getpid(), number))
        with pytest.raises(Interrupted):
            start(tmp_path / str(attempt), *actions, began=signals.start)
        assert time.monotonic() - began < 15
        assert marked_processes(f"CAPDOCTOR_TEST_MARK={mark}") == []
        assert list(Path("/dev/shm").glob(f"psm_{mark}*")) == []
        assert list(short_tmp.iterdir()) == []


_RUN_ALONE = """
import sys
from pathlib import Path
from capdoctor.engines.start import run
from capdoctor.model import EngineSpec
run(EngineSpec("vllm", sys.argv[1], python=Path(sys.argv[2]), out=Path(sys.argv[3])))
"""


def test_an_engine_dies_with_a_capdoctor_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_tmp: Path
) -> None:
    mark = f"kill9x{os.getpid()}"
    monkeypatch.setenv("CAPDOCTOR_TEST_MARK", mark)
    monkeypatch.setenv("FAKE_SEGMENTS", mark)
    actions = ("files", "segment", "orphan", "children", "say", "running", "hang")
    python = make_fake_python(tmp_path / "python", *actions)
    words = [sys.executable, "-c", _RUN_ALONE, str(MODEL), str(python), str(tmp_path / "out")]
    with subprocess.Popen(words) as capdoctor:
        try:
            log = tmp_path / "out/engine.log"
            assert wait_until(lambda: log.exists() and "running" in log.read_text(), 60)
            assert len(marked_processes(f"CAPDOCTOR_TEST_MARK={mark}")) >= 5
            # The orphan may be gone: it is nobody's, and any run that ends meanwhile removes it.
            assert list(Path("/dev/shm").glob(f"psm_{mark}*"))
            assert len(list(short_tmp.glob("*/deep/deeper/file"))) == 1
        finally:
            capdoctor.kill()
    assert wait_until(lambda: marked_processes(f"CAPDOCTOR_TEST_MARK={mark}") == [])
    assert list(Path("/dev/shm").glob(f"psm_{mark}*")) == []
    assert list(short_tmp.iterdir()) == []


def test_killing_capdoctor_and_its_keeper_at_once_leaves_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"both{os.getpid()}"
    monkeypatch.setenv("CAPDOCTOR_TEST_MARK", mark)
    python = make_fake_python(tmp_path / "python", "say", "running", "hang")
    words = [sys.executable, "-c", _RUN_ALONE, str(MODEL), str(python), str(tmp_path / "out")]
    with subprocess.Popen(words) as capdoctor:
        try:
            log = tmp_path / "out/engine.log"
            assert wait_until(lambda: log.exists() and "running" in log.read_text(), 60)
        finally:
            marked = marked_processes(f"CAPDOCTOR_TEST_MARK={mark}")
            for pid in {capdoctor.pid, *marked}:
                if b"fake_engine" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: marked_processes(f"CAPDOCTOR_TEST_MARK={mark}") == [])
    variables = json.loads((tmp_path / "out/environment.json").read_text())["variables"]
    Path(variables["TMPDIR"]).rmdir()  # nobody was left to do that


def test_a_file_size_limit_ends_the_run_with_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_tmp: Path
) -> None:
    mark = f"full{os.getpid()}"
    monkeypatch.setenv("CAPDOCTOR_TEST_MARK", mark)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(CannotDo) as caught:
            start(tmp_path, "flood", "out", "4", "hang")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "limit" in caught.value.sentence
    assert caught.value.hint
    assert marked_processes(f"CAPDOCTOR_TEST_MARK={mark}") == []
    assert not (tmp_path / "out/outcome.json").exists()
    assert list((tmp_path / "out").glob("*.part")) == []


def test_a_full_disk_ends_the_run_with_one_sentence(
    tmp_path: Path, small_disk: Path, short_tmp: Path
) -> None:
    with pytest.raises(CannotDo) as caught:
        start(tmp_path, "flood", "out", "4", "hang", out=small_disk / "run")
    assert "the disk is full" in caught.value.sentence
    assert list((small_disk / "run").glob("*.part")) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of one mebibyte; skip where that is not allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small tmpfs is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_an_out_folder_that_may_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)
    pid = os.fork()
    if pid == 0:
        os.setuid(65534)
        os._exit(_sentence_of_run(locked / "out"))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errno.EACCES


def _sentence_of_run(out: Path) -> int:
    from capdoctor.engines.rundir import run_folder

    try:
        with run_folder(out, "model"):
            pass
    except CannotDo as exc:
        return errno.EACCES if "no permission" in exc.sentence else 1
    return 0


def test_an_out_path_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotDo, match="cannot be written"):
        start(tmp_path, "fail", out=tmp_path / "file/run")
    with pytest.raises(CannotDo, match="cannot be written"):
        start(tmp_path, "fail", out=tmp_path / "file")


def test_a_signal_before_the_engine_starts_starts_none(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="SIGTERM while no engine"):
        start(tmp_path, "hang", began=lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert not (tmp_path / "out/engine.log").exists()


def test_a_signal_while_it_is_diagnosed_is_not_swallowed(tmp_path: Path) -> None:
    def interrupted(_log: Path, _facts: RunFacts) -> Diagnosis:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the diagnosis went on")

    python = make_fake_python(tmp_path / "python", "stage", "weights", "fail")
    spec = EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out")
    with pytest.raises(Interrupted) as caught:
        run(spec, diagnose=interrupted)
    assert caught.value.hint.startswith("capdoctor repro --model ")


def test_variables_of_the_run_reach_the_engine_over_those_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    python = make_fake_python(tmp_path / "python", "stage", "weights", "fail")
    python.write_text(
        python.read_text().replace("exec ", 'echo "GPU=$CUDA_VISIBLE_DEVICES"; exec ')
    )
    mine = {"CUDA_VISIBLE_DEVICES": "3"}
    spec = EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out", environment=mine)
    answer = run(spec, diagnose=diagnose)
    assert "GPU=3" in Path(answer.artifacts["log"]).read_text().splitlines()


def test_a_single_run_is_in_the_list_of_runs(tmp_path: Path) -> None:
    answer = start(tmp_path, "stage", "weights", "fail")
    assert answer.diagnosis is not None
    found = [(r.outcome, r.fingerprint) for r in answer.runs]
    assert found == [(Outcome.CRASHED, answer.diagnosis.fingerprint)]
    written = json.loads(Path(answer.artifacts["json"]).read_text())
    assert [r["outcome"] for r in written["runs"]] == ["crashed"]


def test_a_run_in_a_thread_works_without_signals(tmp_path: Path) -> None:
    answers: list[RunOutcome] = []
    thread = threading.Thread(target=lambda: answers.append(start(tmp_path, "fail")))
    thread.start()
    thread.join(30)
    assert answers[0].outcome is Outcome.CRASHED


def test_a_listener_hears_the_run(tmp_path: Path) -> None:
    python = make_fake_python(tmp_path / "python", "stage", "config", "say", "[rank0] hi", "fail")
    heard = Recorder()
    spec = EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out")
    run(spec, listener=heard, diagnose=diagnose)
    assert heard.stages == [Stage.IMPORT, Stage.CONFIG]
    assert "[rank0] hi" in heard.lines
    assert len(heard.endings) == 1


def test_what_the_driver_wrote_is_evidence_also_in_a_file_a_process(tmp_path: Path) -> None:
    python = make_fake_python(tmp_path / "python", "stage", "weights", "fail")
    writes = 'echo "Event is not valid" >"$CUDA_LOG_FILE"; echo two >"$AMD_LOG_LEVEL_FILE"_12;'
    python.write_text(python.read_text().replace("exec ", f"{writes} exec "))
    seen: list[RunFacts] = []

    def look(log: Path, facts: RunFacts) -> Diagnosis:
        seen.append(facts)
        return diagnose(log, facts)

    spec = EngineSpec("vllm", str(MODEL), python=python, out=tmp_path / "out")
    answer = run(spec, diagnose=look)
    assert seen[0].driver_log == tmp_path / "out/driver.log"
    assert Path(answer.artifacts["driver_log"]).read_text() == "Event is not valid\ntwo\n"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_embedded_engine_runs_under_the_same_control(tmp_path: Path) -> None:
    good = run(EngineSpec("embedded", "demo/clean", out=tmp_path / "good"))
    assert good.outcome is Outcome.STARTED
    assert good.engine.kind == "embedded"
    bad = run(EngineSpec("embedded", "demo/sparse-mla", out=tmp_path / "bad"))
    assert bad.outcome is Outcome.CRASHED
    assert bad.diagnosis is not None
    assert bad.diagnosis.crash_class == "capture_event_outside_graph"
    assert bad.stages[-1].name is Stage.PROFILE_CUDAGRAPH_MEMORY
    assert bad.stages[-1].end is None
    with pytest.raises(CannotDo):
        run(EngineSpec("embedded", str(tmp_path / "none.py"), out=tmp_path / "none"))
