"""Large and hostile logs: the right lines are read, and no more of them are kept than fit."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from capdoctor.logs import DEFAULT_LIMITS, ParsedLog, Run, read_text
from capdoctor.model import Stage
from tests.logs import mutations as m

ALWAYS_SKIP = replace(DEFAULT_LIMITS, whole=0, block=4096)
FLOOD = replace(DEFAULT_LIMITS, whole=0, careful_lines=2_000, tail=4_096, block=1 << 16)
INFO = b"(APIServer pid=1) INFO 11-20 03:20:01 [loggers.py:257] Avg prompt throughput: 1.0\n"
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("path", m.LOGS, ids=lambda p: p.stem)
def test_skipping_finds_what_reading_every_line_finds(path: Path) -> None:
    data = path.read_bytes()
    padded = INFO * 200 + data + INFO * 200
    assert m.story(read_text(padded, limits=ALWAYS_SKIP)) == m.told(padded)


@pytest.mark.parametrize("path", m.LOGS, ids=lambda p: p.stem)
def test_line_numbers_are_right_after_skipping(path: Path) -> None:
    data = path.read_bytes()
    whole, skipped = read_text(data), read_text(INFO * 500 + data, limits=ALWAYS_SKIP)
    want = [(n.line + 500, n.error_line and n.error_line + 500) for n in whole.runs[0].nodes]
    assert [(n.line, n.error_line) for n in skipped.runs[-1].nodes] == want
    assert skipped.total_lines == whole.total_lines + 500


def test_most_lines_of_a_large_log_are_skipped() -> None:
    log = read_text(INFO * 40_000 + m.corpus("vllm-56785-sparse-mla-event.log"))
    assert log.total_lines == 40_297
    assert log.looked_at < 1_000
    assert log.runs[-1].stage_at(log.total_lines) is Stage.PROFILE_CUDAGRAPH_MEMORY


def flood(count: int) -> bytes:
    one = (
        b"(Worker_TP0 pid=7) ERROR 11-20 03:14:13 [m.py:9] Traceback (most recent call last):\n"
        b'(Worker_TP0 pid=7) ERROR 11-20 03:14:13 [m.py:9]   File "/x/vllm/a.py", line 3, in f\n'
        b"(Worker_TP0 pid=7) ERROR 11-20 03:14:13 [m.py:9] ValueError: request %d\n"
    )
    return b"".join(one % i for i in range(count))


def the_run(log: ParsedLog) -> Run:
    (run,) = log.runs
    return run


def test_new_error_in_a_flood_of_known_ones_is_found() -> None:
    rare = (
        b"Traceback (most recent call last):\n"
        b'  File "/x/vllm/b.py", line 4, in g\n'
        b"torch.AcceleratorError: CUDA error: invalid argument\n"
    )
    log = read_text(flood(5_000) + rare + INFO + flood(5_000), limits=FLOOD)
    found = [n for n in the_run(log).nodes if n.type == "torch.AcceleratorError"]
    assert [(n.line, n.frames[0].path) for n in found] == [(15_001, "vllm/b.py")]
    assert log.looked_at < 6_000
    assert any("counted only" in note for note in log.limits_hit)


def test_last_words_behind_a_flood_are_read() -> None:
    log = read_text(flood(20_000) + b"Killed\n", limits=FLOOD)
    run = the_run(log)
    assert [(d.signal, d.line) for d in run.deaths] == [("SIGKILL", 60_001)]
    assert run.nodes[-1].message == "request 19999"


def test_overlong_line_is_read_at_both_ends() -> None:
    long = b"x" * (3 << 20) + b"\rCapturing CUDA graphs (FULL):  50%|#| 1/2 [00:00<00:00]"
    log = read_text(INFO + long + b"\nValueError: after\n")
    run = the_run(log)
    assert (run.bars[0].done, run.bars[0].line) == (1, 2)
    assert [(n.type, n.line) for n in run.nodes] == [("ValueError", 3)]
    assert log.limits_hit == ("1 overlong lines were read in part",)


def test_overlong_last_line_without_a_newline_is_a_line() -> None:
    log = read_text(INFO + b"y" * (3 << 20))
    assert log.total_lines == 2


def test_binary_text_is_called_binary_and_read_all_the_same() -> None:
    log = read_text(bytes(range(256)) * 4_000)
    assert log.binary
    assert not read_text("ümlaut ► " * 100).binary


def test_utf16_of_a_windows_redirect_is_read() -> None:
    (node,) = the_run(read_text("ValueError: x\r\n".encode("utf-16"))).nodes
    assert (node.type, node.message) == ("ValueError", "x")


def test_empty_text_has_no_runs() -> None:
    log = read_text(b"")
    assert (log.runs, log.total_lines) == ((), 0)


def test_hostile_text_reaches_no_value_unescaped() -> None:
    text = "\x1b]0;owned\x07\x1b[2J[bold red]x[/] \x9b31m\u202e ValueError\x00: y\n"
    (line,) = the_run(read_text(text)).lines
    assert line.shown == "[bold red]x[/] 31m ValueError: y"


def test_streams_without_end_are_bounded() -> None:
    data = b"".join(
        b"(W%d pid=%d) ERROR 11-20 03:14:13 [m.py:9] ValueError: x\n" % (i, i) for i in range(9_000)
    )
    run = the_run(read_text(data))
    assert len(run.streams) <= 4_096
    assert len(run.nodes) <= DEFAULT_LIMITS.nodes * 5 // 4


CHILD = """
import pathlib, re, sys
from capdoctor.logs import read_log
log = read_log(sys.argv[1])
status = pathlib.Path("/proc/self/status").read_text()
print(log.total_lines, int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024)
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("one endless line", b"a" * 4_096),
        (
            "errors of new kinds",
            b"(Worker_TP0 pid=7) ERROR 11-20 03:14:13 [m.py:9] ValueError: x\n" * 60,
        ),
        ("carriage returns", b"\rCapturing CUDA graphs (FULL):  50%|#| 1/2 [00:00<00:00]" * 70),
    ],
)
def test_memory_stays_bounded(tmp_path: Path, name: str, line: bytes) -> None:
    path = tmp_path / "big.log"
    with path.open("wb") as file:
        for _ in range(5_000):  # about 20 MB
            file.write(line)
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    peak = json.loads(run.stdout.split()[1])
    assert peak < 150, name


@pytest.mark.parametrize(
    "text",
    [
        b"CUDA error (/x/csrc/file.cu:60): out of memory",
        b"HIP error in f at line 7: invalid argument",
        b"Cuda failure 'unhandled'",
        b"CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS",
        b"f() returned cudaErrorIllegalAddress",
        b"CUDA_ERROR_LAUNCH_FAILED",
    ],
)
def test_stray_gpu_errors_of_a_large_log_are_kept(text: bytes) -> None:
    run = the_run(read_text(INFO * 10_000 + text + b"\n" + INFO * 10_000))
    assert [line.number for line in run.lines if line.text == text.decode()] == [10_001]


def test_begin_of_a_large_log_is_read_line_by_line() -> None:
    quiet = b"(EngineCore pid=2) INFO 11-20 03:20:01 [x.py:1] nothing of interest here\n" * 20_000
    error = b"RuntimeError: CUDA error: unspecified launch failure\n"
    log = read_text(INFO + quiet + error)
    assert log.total_bytes > DEFAULT_LIMITS.whole
    assert the_run(log).ready is not None
    assert the_run(log).nodes[0].line == log.total_lines


@pytest.mark.parametrize("lines", [198, 199, 200, 201])
def test_traceback_at_the_end_of_what_is_read_line_by_line_is_whole(lines: int) -> None:
    filler = b"(EngineCore pid=2) INFO 11-20 03:20:01 [x.py:1] nothing of interest here\n"
    trace = (
        b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyError: 1\n'
    )
    run = the_run(read_text(filler * lines + trace + filler * 20_000))
    assert [(node.type, len(node.frames)) for node in run.nodes] == [("KeyError", 1)]
    assert run.nodes[0].line == lines + 1
