"""Lines taken out of what collectors and engines put around them."""

from __future__ import annotations

import pytest

from capdoctor.logs import Line, StreamId, package_path, read_text
from capdoctor.logs.text import clean, last_segment

PLAIN = "ERROR 11-29 16:18:56 [core.py:1366]   indented text"


def line_of(text: str) -> Line:
    (run,) = read_text(text + "\n").runs
    return run.lines[0]


WRAPPED = [
    "2026-03-04T05:06:07.123456789Z stdout F ",
    "2026-03-04T05:06:07.1+00:00 stderr F ",
    "Aug 19 18:34:30 host-1 vllm[8707]: ",
    "2025-08-19T18:34:30+0000 host vllm[8707]: ",
    "<13>Aug  9 18:34:30 host vllm[8707]: ",
    "vllm-server-1  | ",
    "my_project_vllm_1 | ",
    "vllm  | ",
    "[pod/vllm-0/server] ",
    "2026-03-04 05:06:07 ",
    "[2026-03-04 05:06:07] ",
    "3: ",
    "> ",
    "2026-03-04T05:06:07Z vllm-1  | 2026-03-04T05:06:07Z stderr F ",
    "\x1b[36mvllm-1  | \x1b[0m",
]


@pytest.mark.parametrize("prefix", WRAPPED)
def test_prefixes_of_collectors_are_peeled_and_indentation_stays(prefix: str) -> None:
    line = line_of(prefix + PLAIN)
    assert line.text == "  indented text"
    assert (line.level, line.file, line.lineno, line.time) == (
        "ERROR",
        "core.py",
        1366,
        "11-29 16:18:56",
    )


STREAMS = [
    ("(VllmWorker rank=1 pid=7) ", StreamId("VllmWorker", 7, 1)),
    ("\x1b[1;36m(VllmWorker rank=1 pid=7)\x1b[0;0m ", StreamId("VllmWorker", 7, 1)),
    ("[1;36m(VllmWorker rank=1 pid=7)[0;0m ", StreamId("VllmWorker", 7, 1)),
    ("(VllmWorker TP1 pid=7) ", StreamId("VllmWorker TP1", 7, 1)),
    ("(Worker_DP1_PP0_TP3_EP7 pid=7) ", StreamId("Worker_DP1_PP0_TP3_EP7", 7, 3)),
    ("(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=2, ip=10.0.0.4) ",
     StreamId("RayWorkerWrapper", 2, None, "10.0.0.4")),
    ("[rank3]: ", StreamId(rank=3)),
    ("(EngineCore pid=1) [rank0]: ", StreamId("EngineCore", 1)),
    ("(MainProcess pid=9) ", StreamId("MainProcess", 9)),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "stream"), STREAMS)
def test_process_prefixes_name_the_stream(prefix: str, stream: StreamId) -> None:
    line = line_of(prefix + PLAIN)
    assert (line.stream, line.text) == (stream, "  indented text")


@pytest.mark.parametrize(
    ("header", "file", "lineno"),
    [
        ("INFO 04-28 20:48:13 llm_engine.py:84] ", "llm_engine.py", 84),
        ("INFO 11-29 16:18:35 [v1/engine/core.py:718] ", "v1/engine/core.py", 718),
        ("INFO 11-29 16:18:35 [model_executor/.../utils/fp8_utils.py:12] ",
         "model_executor/.../utils/fp8_utils.py", 12),
        ("WARNING 05-08 19:06:05 [None] ", "None", None),
        ("[E1203 14:24:02.118233017 ProcessGroupNCCL.cpp:2057] ", "ProcessGroupNCCL.cpp", 2057),
        ("[W831 19:15:41.750498123 socket.cpp:464] ", "socket.cpp", 464),
        ("my-own-prefix: INFO 11-29 16:18:35 [core.py:5] ", "core.py", 5),
    ],
)  # fmt: skip
def test_record_headers(header: str, file: str, lineno: int | None) -> None:
    line = line_of(header + "text")
    assert (line.text, line.file, line.lineno) == ("text", file, lineno)


def test_repeats_of_ray_are_cut_off() -> None:
    text = "(Actor pid=4, ip=10.0.0.1) ValueError: x [repeated 3x across cluster] (Ray deduplicates"
    (run,) = read_text(text).runs
    assert run.nodes[0].message == "x"


@pytest.mark.parametrize(
    "text",
    [
        "a | b is a table",
        "  | margin",
        "key: value",
        "3 | x",
        "RuntimeError: Aug 19",
        "(a) text",
        "x > y",
    ],
)
def test_text_that_only_looks_wrapped_stays(text: str) -> None:
    assert line_of(text).text == text


def test_json_that_is_no_record_stays_text() -> None:
    for text in (
        '{"a": 1}',
        "{broken",
        '{"log": 5}',
        "{}",
        '["log"]',
        '{"message": "x"',
        "{" * 5_000,
    ):
        assert line_of(text).text == text


def test_escape_sequences_and_controls_go() -> None:
    assert (
        clean("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x07\x00end")
        == "red link end"
    )
    assert clean("#033[0;36mgreen#033[0m") == "green"
    assert clean("a[10] [0] list[3m]") == "a[10] [0] list[3m]"
    assert last_segment("10%\r20%\r30%\r") == "30%"


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", "vllm/v1/engine/core.py"),
        ("/usr/lib/python3.12/multiprocessing/process.py", "multiprocessing/process.py"),
        ("/opt/src/vllm/vllm/config.py", "vllm/config.py"),
        ("/app/aiter/aiter/mla.py", "aiter/mla.py"),
        ("/tmp/torchinductor_root/ab/cabc.py", "torchinductor/ab/cabc.py"),
        ("/srv/app/engine.py", "/srv/app/engine.py"),
        ("<string>", "<string>"),
        ("uvloop/loop.pyx", "uvloop/loop.pyx"),
    ],
)
def test_paths_are_shortened_to_the_package(file: str, path: str) -> None:
    assert package_path(file) == path
