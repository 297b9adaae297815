"""Which frame of a hung engine's stacks is shown: that of the process the others wait for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from capdoctor.diagnosis.waiting import waiting_at

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
