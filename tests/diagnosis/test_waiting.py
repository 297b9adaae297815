"""Which frame of a hung engine's stacks is shown: that of the process the others wait for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor.diagnosis import diagnose, diagnose_all
from capdoctor.diagnosis.run_files import MARK
from capdoctor.diagnosis.waiting import waiting_at
from capdoctor.model import Frame, RunFacts, Stage, Verdict
from tests.diagnosis.expected import DATA
from tests.diagnosis.trace_samples import REFUSED, log_of

FILE = "vllm/v1/executor/multiproc_executor.py"
FRONT = """Fatal Python error: Aborted

Current thread 0x00007f50e0a44b80 (most recent call first):
  File "/x/site-packages/zmq/sugar/poll.py", line 106 in poll
  File "/x/site-packages/vllm/v1/engine/utils.py", line 1100 in wait_for_engine_startup
  File "/x/site-packages/vllm/v1/engine/utils.py", line 1000 in launch_core_engines

"""
IDLE = """Fatal Python error: Aborted

Thread 0x00007f50dfdfc6c0 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 359 in wait

Current thread 0x00007f50e0a44b80 (most recent call first):
  File "/x/site-packages/vllm/distributed/device_communicators/shm_broadcast.py", line 61 in dequeue
  File "/x/site-packages/vllm/v1/executor/multiproc_executor.py", line 900 in worker_busy_loop

"""
ENGINE = """Fatal Python error: Aborted

Current thread 0x00007f50e0a44b80 (most recent call first):
  File "/usr/lib/python3.12/subprocess.py", line 1264 in wait
  File "/x/site-packages/flashinfer/jit/core.py", line 77 in build
  File "/x/site-packages/vllm/v1/engine/core.py", line 1300 in run_engine_core

"""


def dumped(folder: Path) -> str:
    """The stacks of a process that really was ended by SIGABRT."""
    file = folder / "site-packages" / FILE
    file.parent.mkdir(parents=True)
    body = "import time\ndef worker_busy_loop():\n    load()\ndef load():\n"
    body += "    print('up', flush=True), time.sleep(60)\nworker_busy_loop()\n"
    file.write_text(body)
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with subprocess.Popen(
        [sys.executable, str(file)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGABRT)
        return process.communicate()[1]


def shown(folder: Path, text: str) -> str | None:
    stacks = folder / "after-end.log"
    stacks.write_text(text)
    frame = waiting_at(stacks)
    return None if frame is None else f"{frame.file}:{frame.line} {frame.function}"


def test_a_real_dump_names_the_line_that_waits(tmp_path: Path) -> None:
    assert shown(tmp_path, FRONT + dumped(tmp_path)) == f"{FILE}:5 load"


@pytest.mark.parametrize("text", [FRONT + IDLE + ENGINE, ENGINE + IDLE + FRONT, IDLE + ENGINE])
def test_a_process_that_waits_for_another_is_not_named(tmp_path: Path, text: str) -> None:
    assert shown(tmp_path, text) == "flashinfer/jit/core.py:77 build"


def test_if_all_wait_the_deepest_is_named(tmp_path: Path) -> None:
    found = shown(tmp_path, FRONT + IDLE)
    assert found == "vllm/distributed/device_communicators/shm_broadcast.py:61 dequeue"


@pytest.mark.parametrize("text", ["", "bye\n", "Fatal Python error: Aborted\n"])
def test_without_stacks_nothing_is_named(tmp_path: Path, text: str) -> None:
    assert shown(tmp_path, text) is None


def test_a_file_that_is_not_there_names_nothing(tmp_path: Path) -> None:
    assert waiting_at(tmp_path / "after-end.log") is None
    assert waiting_at(None) is None


def hung_run(folder: Path, stacks: str, outcome: str) -> Path:
    """The folder of a run, as it is after the run."""
    folder.mkdir()
    (folder / MARK).touch()
    (folder / "engine.log").write_text(STARTING)
    (folder / "after-end.log").write_text(stacks)
    (folder / "outcome.json").write_text(outcome)
    return folder


HUNG = json.dumps({"outcome": "hung", "stages": [{"name": "import"}, {"name": "weights"}]})
LIVE = RunFacts(how="hung", stage=Stage.WEIGHTS, engine="vllm")
STARTING = (
    "INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.14.1) with config: x\n"
)


def test_the_diagnosis_of_a_hang_has_the_place_at_once_and_from_the_folder(tmp_path: Path) -> None:
    run = hung_run(tmp_path / "run", FRONT + IDLE + ENGINE, HUNG)
    live = diagnose(run / "engine.log", facts=LIVE)
    assert live.root_frame == Frame("flashinfer/jit/core.py", 77, "build")
    [(_, later)] = diagnose_all(run)
    assert diagnose(run / "engine.log") == later
    for found in (live, later):
        assert (found.verdict, found.stage) == (Verdict.STARTUP_HANG, Stage.WEIGHTS)
        assert found.root_frame == live.root_frame
        assert found.fingerprint is None


def test_who_has_the_stacks_is_not_told_to_take_them(tmp_path: Path) -> None:
    run = hung_run(tmp_path / "a run", FRONT + IDLE + ENGINE, HUNG)
    [(_, found)] = diagnose_all(run)
    assert found.next[0] == f"less '{run / 'after-end.log'}'   # where each process waits"
    assert not any("py-spy" in line for line in found.next)
    (run / "after-end.log").unlink()
    [(_, found)] = diagnose_all(run)
    assert any("py-spy" in line for line in found.next)


def test_a_hang_that_printed_nothing_at_all_has_its_place_too(tmp_path: Path) -> None:
    run = hung_run(tmp_path / "run", ENGINE, HUNG)
    (run / "engine.log").write_text("")
    [(_, later)] = diagnose_all(run)
    for found in (later, diagnose(run / "engine.log", facts=LIVE)):
        assert found.verdict is Verdict.STARTUP_HANG
        assert found.root_frame == Frame("flashinfer/jit/core.py", 77, "build")


@pytest.mark.parametrize("stacks", ["", "Shutting down.\n", "\0" * 100])
def test_a_hang_without_stacks_has_no_place(tmp_path: Path, stacks: str) -> None:
    [(_, found)] = diagnose_all(hung_run(tmp_path / "run", stacks, HUNG))
    assert (found.verdict, found.root_frame) == (Verdict.STARTUP_HANG, None)


@pytest.mark.parametrize(
    "outcome",
    [
        *("", "{", "[]", "null", '"hung"', '{"outcome": "crashed"}', '{"outcome": ["hung"]}'),
        *("[" * 9999, '{"error": "hung"}', '{"outcome": "HUNG"}'),
    ],
)
def test_a_run_that_does_not_say_that_it_hung_did_not(tmp_path: Path, outcome: str) -> None:
    [(_, found)] = diagnose_all(hung_run(tmp_path / "run", ENGINE, outcome))
    assert found.verdict is Verdict.ROOT_CAUSE_NOT_IN_LOG
    assert found.root_frame is None


@pytest.mark.parametrize("stages", [[], None, 7, [7], [{}], [{"name": "x"}], [{"name": [1]}]])
def test_stages_that_cannot_be_read_leave_it_a_hang(tmp_path: Path, stages: object) -> None:
    outcome = json.dumps({"outcome": "hung", "stages": stages})
    [(_, found)] = diagnose_all(hung_run(tmp_path / "run", ENGINE, outcome))
    assert found.verdict is Verdict.STARTUP_HANG


def test_the_stacks_beside_a_crash_are_no_place_of_it(tmp_path: Path) -> None:
    run = hung_run(tmp_path / "run", ENGINE, '{"outcome": "crashed"}')
    (run / "engine.log").write_text(log_of(REFUSED))
    plain = tmp_path / "plain.log"
    plain.write_text(log_of(REFUSED))
    [(_, found)] = diagnose_all(run)
    assert found.root_frame == diagnose(plain).root_frame


def test_a_log_alone_loads_nothing_of_runs_and_traces() -> None:
    code = (
        "import sys; from capdoctor.diagnosis import diagnose; from pathlib import Path\n"
        "diagnose(Path(sys.argv[1])); print(*sorted(sys.modules))"
    )
    log = DATA / "corpus" / "vllm-19196-ctrl-c.log"
    loaded = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "capdoctor.model.diagnosis" in loaded
    unused = ["capdoctor.model.runs", "capdoctor.model.traces", "capdoctor.diagnosis.traced"]
    assert not {*unused, "capdoctor.diagnosis.waiting", "torch"} & {*loaded}
