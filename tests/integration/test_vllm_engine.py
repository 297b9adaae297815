"""The real vLLM CPU engine under control. Each start takes 7 to 45 s, so they are few."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from capdoctor.engines.keeping import leavings
from capdoctor.engines.listener import Quiet
from capdoctor.engines.pythons import find_python
from capdoctor.engines.start import run
from capdoctor.errors import CannotDo, Interrupted
from capdoctor.model import Diagnosis, EngineSpec, Outcome, RunOutcome, Stage, Verdict
from tests.engines.support import marked_processes

pytestmark = pytest.mark.engine

MODELS = Path(__file__).parents[1] / "data/models"


@dataclass
class Act(Quiet):
    """Do something to an engine process as soon as the log holds a text."""

    when: str
    who: str
    number: signal.Signals
    done: list[int] = field(default_factory=list)

    def line_printed(self, line: str, _seconds: float) -> None:
        if self.when in line and not self.done:
            pid = os.getpid()
            if self.who != "capdoctor":
                pid = int(line.partition(f"({self.who} pid=")[2].partition(")")[0])
            self.done.append(pid)
            os.kill(pid, self.number)


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check after the test that no process, no temporary file and no segment is left."""
    folder = Path(tempfile.mkdtemp(prefix="cd-", dir="/tmp"))
    mark = folder.name
    monkeypatch.setenv("CAPDOCTOR_TEST_MARK", mark)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = _segments()
    yield
    assert marked_processes(f"CAPDOCTOR_TEST_MARK={mark}") == []
    assert list(folder.iterdir()) == []
    folder.rmdir()
    assert _unused_segments() <= before


def _segments() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def _unused_segments() -> set[str]:
    """Give the segments that nobody alive has: other tests run at the same time."""
    used = leavings.inodes_in_use(leavings.all_pids())
    return {name for name in _segments() if leavings._inode(name) not in {*used, None}}


def crash(outcome: RunOutcome) -> Diagnosis:
    assert outcome.outcome is Outcome.CRASHED, outcome.reason
    assert outcome.diagnosis is not None
    return outcome.diagnosis


def frame(diagnosis: Diagnosis) -> tuple[str, str | None] | None:
    found = diagnosis.root_frame
    return (found.file, found.function) if found else None


@pytest.mark.usefixtures("nothing_left")
def test_a_two_layer_llama_starts(spec: EngineSpec) -> None:
    answer = run(spec)
    assert answer.outcome is Outcome.STARTED, answer.reason
    assert answer.diagnosis is None
    names = [span.name for span in answer.stages]
    assert names[:2] == [Stage.IMPORT, Stage.CONFIG]
    assert names[-1] is Stage.SERVING
    assert Stage.WEIGHTS in names
    assert all(span.end is not None and span.end >= span.start for span in answer.stages)
    assert answer.engine.version == "0.32.0"
    assert {"front end", "EngineCore", "Worker"} <= {end.name for end in answer.processes}
    assert "vllm" in json.loads(Path(answer.artifacts["runner"]).read_text())["vllm_file"]
    assert not (Path(answer.artifacts["folder"]) / "caches").exists()


@pytest.mark.usefixtures("nothing_left")
def test_an_overlay_runs_another_trees_python_and_stops_after_a_stage(
    spec: EngineSpec, tmp_path: Path
) -> None:
    installed = find_python(spec.python).vllm
    assert installed is not None
    tree = tmp_path / "tree"
    ignore = shutil.ignore_patterns("*.so", "__pycache__", "*.json", "_version.py")
    shutil.copytree(installed.package, tree / "vllm", ignore=ignore)
    with (tree / "vllm/entrypoints/llm.py").open("a") as file:
        file.write("\nprint('this is the other tree')\n")
    answer = run(replace(spec, source=tree, stop_after=Stage.CONFIG))
    assert answer.outcome is Outcome.STOPPED_AFTER_STAGE, answer.reason
    assert "this is the other tree" in Path(answer.artifacts["log"]).read_text()
    runner = json.loads(Path(answer.artifacts["runner"]).read_text())
    assert Path(runner["vllm_file"]).is_relative_to(answer.artifacts["overlay"])
    assert runner["version"] == "0.32.0+overlay"


@pytest.mark.usefixtures("nothing_left")
def test_contradictory_arguments_after_the_dashes_are_named(spec: EngineSpec) -> None:
    arguments = ("--tensor-parallel-size", "3", "--port", "8001")
    found = crash(run(replace(spec, extra_args=arguments)))
    assert found.crash_class == "config_invalid"
    assert found.stage is Stage.CONFIG
    assert frame(found) == ("vllm/engine/arg_utils.py", "create_engine_config")


@pytest.mark.usefixtures("nothing_left")
def test_arguments_that_vllm_does_not_know_are_a_setup_failure(spec: EngineSpec) -> None:
    with pytest.raises(CannotDo, match="--no-such-thing"):
        run(replace(spec, extra_args=("--no-such-thing", "5")))


@pytest.mark.usefixtures("nothing_left")
def test_a_kv_cache_too_small_for_one_request_is_named(spec: EngineSpec) -> None:
    arguments = {**spec.engine_args, "max_model_len": 2048, "kv_cache_memory_bytes": 400_000}
    found = crash(run(replace(spec, engine_args=arguments)))
    assert found.crash_class == "kv_cache_too_small"
    assert found.stage is Stage.KV_CACHE
    assert frame(found) == ("vllm/v1/core/kv_cache_utils.py", "_check_enough_kv_cache_memory")


@pytest.mark.usefixtures("nothing_left")
def test_remote_code_is_named(spec: EngineSpec) -> None:
    found = crash(run(replace(spec, model=str(MODELS / "remote_code"))))
    assert found.crash_class == "trust_remote_code"
    assert found.stage is Stage.CONFIG
    assert frame(found) == ("vllm/engine/arg_utils.py", "create_model_config")


@pytest.mark.usefixtures("nothing_left")
def test_a_hub_id_while_offline_is_named(
    spec: EngineSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    found = crash(run(replace(spec, model="some-lab/some-model-7b")))
    assert found.crash_class == "hub_access"
    assert found.stage is Stage.CONFIG
    assert frame(found) == ("vllm/transformers_utils/repo_utils.py", "get_model_path")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("who", "when"),
    [("Worker", "Starting to load model"), ("EngineCore", "Initializing a V1 LLM engine")],
)
def test_a_process_killed_in_the_middle_is_found_by_who_vanished_first(
    spec: EngineSpec, who: str, when: str
) -> None:
    act = Act(when, who, signal.SIGKILL)
    answer = run(spec, listener=act)
    found = crash(answer)
    victim = next(end for end in answer.processes if end.pid == act.done[0])
    assert victim.end in ("SIGKILL", "unknown", "SIGKILL (says the log)")
    assert f"first to go was {who} {act.done[0]}" in answer.reason
    honest = found.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG
    assert honest or (found.crash_class, found.error and found.error.type) == (
        "native_crash",
        "SIGKILL",
    )
    assert found.error is None or found.error.type != "BrokenPipeError"


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("who", "when", "stage"),
    [
        ("Worker", "Starting to load model", Stage.WEIGHTS),
        ("EngineCore", "Initializing a V1 LLM engine", Stage.DEVICE_INIT),
    ],
)
def test_a_segmentation_fault_is_a_native_crash(
    spec: EngineSpec, who: str, when: str, stage: Stage
) -> None:
    act = Act(when, who, signal.SIGSEGV)
    answer = run(spec, listener=act)
    found = crash(answer)
    assert found.crash_class == "native_crash"
    assert found.error is not None
    assert found.error.type == "SIGSEGV"
    assert found.stage is stage
    assert f"first to go was {who} {act.done[0]}" in answer.reason


@pytest.mark.usefixtures("nothing_left")
def test_a_stopped_process_is_a_hang(spec: EngineSpec) -> None:
    act = Act("Initializing a V1 LLM engine", "EngineCore", signal.SIGSTOP)
    answer = run(replace(spec, hang_after=8.0), listener=act)
    assert answer.outcome is Outcome.HUNG, answer.reason
    assert f"EngineCore {act.done[0]}" in answer.reason
    assert answer.diagnosis is not None
    assert answer.diagnosis.crash_class == "startup_hang"
    assert answer.diagnosis.stage is Stage.DEVICE_INIT
    assert "most recent call first" in Path(answer.artifacts["after_end"]).read_text()


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize(
    ("number", "when"),
    [
        (signal.SIGINT, 1.0),
        (signal.SIGINT, "Resolved architecture"),
        (signal.SIGTERM, "non-default args"),
        (signal.SIGHUP, 5.0),
        (signal.SIGINT, "Starting to load model"),
    ],
)
def test_an_interrupted_start_leaves_nothing(
    spec: EngineSpec, number: signal.Signals, when: str | float
) -> None:
    """With the 45 of the fake engine (tests/engines) these are fifty."""
    act = Act(str(when), "capdoctor", number)
    if isinstance(when, float):
        threading.Timer(when, os.kill, (os.getpid(), number)).start()
    with pytest.raises(Interrupted, match=number.name):
        run(spec, listener=act)
