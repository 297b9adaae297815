"""Lines that native code, kernels, shells and supervisors write, one at a time."""

from __future__ import annotations

import time

import pytest

from capdoctor.logs import Death, Interrupt, NativeEvent, Run, StreamId, read_text
from capdoctor.logs.signs import find_signs
from capdoctor.logs.tables import table


def run_of(line: str) -> Run:
    (run,) = read_text(line + "\n").runs
    return run


def event(line: str) -> NativeEvent:
    (found,) = run_of(line).events
    return found


def death(line: str) -> Death:
    (found,) = run_of(line).deaths
    return found


EVENTS = [
    (
        "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:368 'invalid argument'",
        "native_check",
        "invalid argument",
        "/workspace/csrc/custom_all_reduce.cuh",
        368,
    ),
    (
        "Failed: /workspace/csrc/custom_all_reduce.cuh:368 'invalid argument'",
        "native_check",
        "invalid argument",
        "/workspace/csrc/custom_all_reduce.cuh",
        368,
    ),
    (
        "worker-6:56890:56890 [0] enqueue.cc:267 NCCL WARN Cuda failure 'out of memory'",
        "nccl_warn",
        "Cuda failure 'out of memory'",
        "enqueue.cc",
        267,
    ),
    (
        "[AITER] csrc/asm_mla.cu:181 fail to call hipLaunch(f) ---> [HIP error](invalid argument)",
        "aiter_call",
        "invalid argument",
        "csrc/asm_mla.cu",
        181,
    ),
    (
        "[aiter] build [module_mla] under /x/aiter/jit/build failed !!!!!!",
        "aiter_build",
        "build [module_mla] under /x/aiter/jit/build failed",
        "/x/aiter/jit/build",
        None,
    ),
    (
        "Memory access fault by GPU node-1 (Agent handle: 0x55d) on address 0x7f. Reason: Unknown.",
        "gpu_memory_fault",
        "Memory access fault by GPU node-1 (Agent handle: 0x55d) on address 0x7f. Reason: Unknown.",
        None,
        None,
    ),
    (
        "HW Exception by GPU node-2 (Agent handle: 0x1) reason :GPU Hang",
        "gpu_exception",
        "HW Exception by GPU node-2 (Agent handle: 0x1) reason :GPU Hang",
        None,
        None,
    ),
    (
        "/x/IndexKernel.cu:92: operator(): thread: [1,0,0] Assertion `-sizes[i] <= index` failed.",
        "device_assert",
        "Assertion `-sizes[i] <= index` failed.",
        "/x/IndexKernel.cu",
        92,
    ),
    (
        "double free or corruption (!prev)",
        "glibc_abort",
        "double free or corruption (!prev)",
        None,
        None,
    ),
    (
        "python: symbol lookup error: /x/_C.abi3.so: undefined symbol: foo",
        "loader",
        "symbol lookup error: /x/_C.abi3.so: undefined symbol: foo",
        "/x/_C.abi3.so",
        None,
    ),
    (
        "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
        "compiler",
        "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
        None,
        None,
    ),
    (
        "[12:00:01.5][1234][CUDA][E] event was recorded in another graph",
        "driver_log",
        "event was recorded in another graph",
        None,
        None,
    ),
    (
        "INFO 10-22 09:43:49 [s.py:466] No available shared memory broadcast block found in 60 s.",
        "waiting",
        "No available shared memory broadcast block found in 60 s.",
        None,
        None,
    ),
]


@pytest.mark.parametrize(("line", "kind", "message", "file", "lineno"), EVENTS)
def test_native_lines(
    line: str, kind: str, message: str, file: str | None, lineno: int | None
) -> None:
    found = event(line)
    assert (found.kind, found.message, found.file, found.lineno) == (kind, message, file, lineno)


def test_numbers_and_calls_of_native_lines() -> None:
    xid = event(
        "Nov 29 18:30:21 n kernel: [12.345678] NVRM: Xid (PCI:0000:10:1c): 31, pid=4711, MMU"
    )
    assert (xid.kind, xid.code, xid.pid, xid.api) == ("xid", 31, 4711, "PCI:0000:10:1c")
    hsa = event(
        ":0:rocdevice.cpp :2875: HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation. code: 0x1016"
    )
    assert hsa.code == 0x1016
    driver = event("[12:00:01.5][1234][CUDA][E][cuEventRecord] bad event")
    assert (driver.api, driver.message) == ("cuEventRecord", "bad event")
    oom = event("[12.345678] Out of memory: Killed process 812 (VLLM::Worker_TP) total-vm:1kB")
    assert (oom.kind, oom.pid) == ("oom_kill", 812)


DEATHS = [
    (
        "Worker proc VllmWorker-0 died unexpectedly, shutting down executor.",
        "VllmWorker-0",
        None,
        None,
    ),
    (
        "Worker proc VllmWorker-1 died unexpectedly (exit code: -6), shutting down executor.",
        "VllmWorker-1",
        -6,
        "SIGABRT",
    ),
    (
        "Worker proc VllmWorker-0 died unexpectedly (exit code: 0), shutting down",
        "VllmWorker-0",
        0,
        None,
    ),
    (
        "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
        "EngineCore_DP0",
        None,
        None,
    ),
    (
        "RuntimeError: Process ApiServer_0 (PID: 77) died with exit code -9",
        "ApiServer_0",
        -9,
        "SIGKILL",
    ),
    ("Killed", None, None, "SIGKILL"),
    (
        "run.sh: line 3:  4711 Segmentation fault      (core dumped) vllm serve x",
        None,
        None,
        "SIGSEGV",
    ),
    ("Aborted (core dumped)", None, None, "SIGABRT"),
    (
        "[2025-07-10 10:23:08] Child process unexpectedly failed with exitcode=131. pid=20417",
        None,
        131,
        "SIGQUIT",
    ),
    ("Rank 0 scheduler died during initialization (exit code: -6)", "scheduler", -6, "SIGABRT"),
    ("vllm-1 exited with code 137", "vllm-1", 137, "SIGKILL"),
    ("worker exited with exit code 136", "worker", 136, "SIGFPE"),
    (
        "Worker VllmWorkerProcess pid 2211 died, exit code: -11",
        "VllmWorkerProcess",
        -11,
        "SIGSEGV",
    ),
    (
        "E1109 10:00:00.123000 77 x/api.py:882] failed (exitcode: -11) local_rank: 3 (pid: 99)",
        None,
        -11,
        "SIGSEGV",
    ),
    ("vllm.service: Main process exited, code=killed, status=9/KILL", "vllm.service", 9, "SIGKILL"),
]


@pytest.mark.parametrize(("line", "process", "code", "signal"), DEATHS)
def test_deaths(line: str, process: str | None, code: int | None, signal: str | None) -> None:
    found = death(line)
    assert (found.process, found.exit_code, found.signal) == (process, code, signal)


def test_failed_processes_are_one_death_each() -> None:
    run = run_of(
        "RuntimeError: Engine core initialization failed. Failed core proc(s): "
        "{'EngineCore_DP0': -9, 'EngineCore_DP1': 1}"
    )
    assert [(d.process, d.exit_code, d.signal) for d in run.deaths] == [
        ("EngineCore_DP0", -9, "SIGKILL"), ("EngineCore_DP1", 1, None),
    ]  # fmt: skip


def interrupts(line: str) -> list[Interrupt]:
    return list(run_of(line).interrupts)


def test_interrupts() -> None:
    assert [(i.kind, i.signal) for i in interrupts("^C")] == [("ctrl_c", "SIGINT")]
    assert ("signal", "SIGTERM") in [
        (i.kind, i.signal) for i in interrupts("Received signal 15, exiting")
    ]
    assert ("signal", "SIGTERM") in [
        (i.kind, i.signal)
        for i in interrupts("[shutdown] EngineCore: trigger received signal=SIGTERM")
    ]
    assert [i.kind for i in interrupts("KeyboardInterrupt")] == ["keyboard_interrupt"]


@pytest.mark.parametrize(
    "line",
    [
        "INFO 11-29 16:18:35 [core.py:1] Aborted request cmpl-1.",
        "INFO 11-29 16:18:35 [core.py:1] All failed checks: 0",
        "Process group initialised",
        "The Killed flag is off",
        "NCCL INFO Channel 00 : 0[0] -> 1[1]",
        "INFO 11-29 16:18:35 [x.py:1] no memory fault by design",
    ],
)
def test_harmless_lines_are_no_signs(line: str) -> None:
    run = run_of(line)
    assert (run.events, run.deaths, run.interrupts, run.nodes) == ((), (), (), ())


def test_source_line_of_a_frame_is_no_sign() -> None:
    run = run_of(
        "Traceback (most recent call last):\n"
        '  File "a.py", line 1, in f\n'
        '    raise RuntimeError("Worker proc x died unexpectedly, shutting down")\n'
        "RuntimeError: no"
    )
    assert run.deaths == ()


@pytest.mark.parametrize("sign", table("sign"), ids=lambda sign: str(sign["id"]))
def test_no_pattern_takes_long_over_its_own_needles(sign: dict[str, list[str]]) -> None:
    for needle in sign["needles"]:
        begin = time.process_time()
        find_signs((needle * 8_000)[:60_000] + "!", 1, StreamId())
        assert time.process_time() - begin < 0.2, needle
