"""What kind of log it is where little is said: orderly exits, supervisors, tracebacks cut off."""

from __future__ import annotations

import pytest

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.logs import read_text
from capdoctor.model import Diagnosis

START = "INFO 10-14 08:01:00 [api_server.py:1] vLLM API server version 0.10.0\n"
WEIGHTS = START + "(EngineCore pid=7) INFO 10-14 08:02:00 [x.py:1] Starting to load model x...\n"
READY = WEIGHTS + "INFO:     Application startup complete.\n"
EXIT = """Traceback (most recent call last):
  File "/x/site-packages/vllm/entrypoints/cli/main.py", line 73, in main
    args.dispatch_function(args)
  File "/x/site-packages/vllm/v1/engine/core.py", line 700, in {function}
    raise SystemExit({code})
SystemExit{shown}
"""


def answer_to(text: str) -> Diagnosis:
    return diagnose_parsed(read_text(text), store.load(), None)


def exit_of(code: str, function: str = "serve") -> str:
    return EXIT.format(function=function, code=code, shown=f": {code}" if code else "")


@pytest.mark.parametrize(
    "text", [exit_of("0"), exit_of("", "signal_handler"), exit_of("143", "sigterm_handler")]
)
def test_orderly_exit_is_perhaps_a_stop(text: str) -> None:
    found = answer_to(WEIGHTS + text)
    assert (found.verdict, found.confidence) == ("user_interrupt", "possible")
    assert found.error is not None
    assert found.error.type == "SystemExit"


@pytest.mark.parametrize("text", [exit_of("1"), exit_of("")])
def test_exit_with_another_code_is_no_stop(text: str) -> None:
    assert answer_to(WEIGHTS + text).verdict == "root_cause_not_in_log"


def test_worker_that_is_told_to_exit_tells_nothing() -> None:
    text = "".join(f"(Worker_TP1 pid=9) {line}\n" for line in exit_of("0").splitlines())
    assert answer_to(WEIGHTS + text).verdict == "root_cause_not_in_log"


def test_error_before_an_orderly_exit_is_the_crash() -> None:
    error = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    assert answer_to(WEIGHTS + error + exit_of("0")).crash_class == "kernel_arch_missing"


@pytest.mark.parametrize(
    ("line", "signal", "confidence"),
    [
        ("vllm-1 exited with code 139", "SIGSEGV", "likely"),
        ("vllm-1 exited with code 137", "SIGKILL", "possible"),
        ("      Exit Code:    137", "SIGKILL", "possible"),
    ],
)
def test_signal_that_a_supervisor_saw_is_all_there_is(
    line: str, signal: str, confidence: str
) -> None:
    found = answer_to(f"{WEIGHTS}{line}\n")
    assert (found.crash_class, found.confidence) == ("native_crash", confidence)
    assert found.error is not None
    assert found.error.type == signal


@pytest.mark.parametrize("line", ["vllm-1 exited with code 1", "vllm-1 exited with code 143"])
def test_plain_exit_that_a_supervisor_saw_is_no_cause(line: str) -> None:
    assert answer_to(f"{WEIGHTS}{line}\n").verdict == "root_cause_not_in_log"


def test_supervisor_may_kill_what_was_ready() -> None:
    assert answer_to(f"{READY}vllm-1 exited with code 137\n").verdict == "clean_startup"


FAILED = "(EngineCore pid=7) ERROR 10-14 08:02:01 [core.py:9] "
AGAIN = """(EngineCore pid={pid}) Process EngineCore:
(EngineCore pid={pid}) Traceback (most recent call last):
(EngineCore pid={pid})   File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in run
"""


def test_error_is_read_from_the_record_when_its_second_printing_breaks_off() -> None:
    record = (
        f"{FAILED}RuntimeError: No supported CUDA architectures found for major versions [10].\n"
    )
    found = answer_to(WEIGHTS + record + AGAIN.format(pid=7))
    assert (found.crash_class, found.error and found.error.type) == (
        "kernel_arch_missing",
        "RuntimeError",
    )


def test_second_printing_of_a_follow_on_is_no_root() -> None:
    record = (
        f"{FAILED}Exception: WorkerProc initialization failed due to an exception in a background"
    )
    found = answer_to(f"{WEIGHTS}{record} process.\n" + AGAIN.format(pid=7))
    assert found.verdict == "root_cause_not_in_log"


def test_traceback_that_breaks_off_in_another_process_keeps_the_answer_modest() -> None:
    record = f"{FAILED}ImportError: /x/_C.so: undefined symbol: _ZN3c10\n"
    found = answer_to(WEIGHTS + record + AGAIN.format(pid=8))
    assert found.confidence in {"possible", "unknown"}


@pytest.mark.parametrize(
    "line",
    [
        "h:25:25 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address in use",
        "h:25:25 [0] NCCL INFO RAS failed to establish a client listening socket at localhost:1",
    ],
)
def test_line_of_nccl_that_ends_nothing_is_no_cause(line: str) -> None:
    assert answer_to(f"{WEIGHTS}{line}\n").verdict == "root_cause_not_in_log"


def test_library_that_finds_no_code_for_the_gpu_is_the_cause_if_nothing_else_is() -> None:
    line = "rocBLAS error: Cannot read /r/TensileLibrary.dat: Illegal seek for GPU arch : gfx1150\n"
    assert answer_to(WEIGHTS + line).crash_class == "kernel_arch_missing"
    other = "RuntimeError: CUDA error: invalid argument\n"
    assert answer_to(WEIGHTS + line + other).crash_class != "kernel_arch_missing"
