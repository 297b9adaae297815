r"""Tracebacks that a collector put on one line, in a log of any length."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.logs import ExceptionNode, LinkKind, read_text
from capdoctor.logs.frames import HEAD
from capdoctor.logs.oneline import unfolded
from tests.logs import mutations as m

TRACE = f"""{HEAD}:
  File "/x/site-packages/vllm/v1/worker/gpu_worker.py", line 401, in compile_or_warm_up_model
    cuda_graph_memory_bytes = self.model_runner.capture_model()
  File "/x/site-packages/vllm/v1/worker/gpu_model_runner.py", line 4001, in capture_model
    sizes = a or b if flag else sorted(sizes)
RuntimeError: CUDA error: operation not permitted when stream is capturing"""
CHAIN = f"""{HEAD}:
  File "a.py", line 1, in f
    x['k']
KeyError: 'k'

The above exception was the direct cause of the following exception:

{TRACE}"""
BEFORE = [f"INFO 10-14 08:01:{n:02} [core.py:1] loading {n}" for n in range(30)]
HEADER = "(EngineCore pid=7) ERROR 10-14 08:02:00 [core.py:1366] "
FOLDS = {
    "backslash n": "\\n",
    "backslash r n": "\\r\\n",
    "syslog": "#012",
    "bars": " | ",
    "entity": "<br>",
    "JSON escape": "\\u000a",
    "sign": "\u21b5",
}


def nodes_of(line: str) -> tuple[ExceptionNode, ...]:
    (run,) = read_text("\n".join([*BEFORE, line, *BEFORE]) + "\n").runs
    return run.nodes


def told(nodes: tuple[ExceptionNode, ...]) -> list[object]:
    return [
        (node.type, node.message, [(f.path, f.line, f.function, f.code) for f in node.frames])
        for node in nodes
    ]


@pytest.mark.parametrize("text", [TRACE, CHAIN], ids=["one", "chain"])
@pytest.mark.parametrize("fold", FOLDS)
def test_folded_traceback_reads_as_the_unfolded_one(fold: str, text: str) -> None:
    line = "EngineCore failed to start. " + text.replace("\n", FOLDS[fold])
    assert told(nodes_of(HEADER + line)) == told(nodes_of(text))


def test_line_ends_that_became_spaces() -> None:
    found = nodes_of(HEADER + " ".join(CHAIN.split()))
    assert told(found) == told(nodes_of(CHAIN))
    assert found[1].linked(LinkKind.CAUSE) == found[0].index


def test_field_of_a_logfmt_line_is_unescaped() -> None:
    inner = TRACE.replace('"', '\\"').replace("\n", "\\n")
    found = nodes_of(f'time=2026-01-02T03:04:05Z level=error msg="{inner}" pod=a-1')
    assert told(found) == told(nodes_of(TRACE))


@pytest.mark.parametrize("key", ["message", "error", "stacktrace"])
def test_json_object_keeps_its_end_out_of_the_message(key: str) -> None:
    text = json.dumps({"time": "2026-01-02T03:04:05", "logger": "x", key: TRACE})
    assert [node.message for node in nodes_of(text)] == [nodes_of(TRACE)[0].message]
    (run,) = read_text(text).runs  # a log of one line is no literal, either
    assert told(run.nodes) == told(nodes_of(TRACE))


def test_json_record_inside_dockers_json() -> None:
    record = json.dumps({"level": "ERROR", "lineno": 5, "message": f"failed\n{TRACE}"})
    line = json.dumps({"log": record + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"})
    for text in (line, f"2026-01-02T03:04:05.123456789Z stderr F {record}"):
        (run,) = read_text(text).runs
        assert told(run.nodes) == told(nodes_of(TRACE))
        assert run.nodes[0].record is not None
        assert run.nodes[0].record.level == "ERROR"


def test_parts_keep_line_number_and_process() -> None:
    (node,) = nodes_of(HEADER + "failed " + TRACE.replace("\n", "\\n"))
    assert (node.line, node.last_line, node.stream.pid) == (31, 31, 7)


@pytest.mark.parametrize(
    "text",
    [
        "said: 'Traceback (most recent call last):\\n  File \"a.py\", line 1, in f\\nOSError: x'",
        'RuntimeError("Traceback (most recent call last):\\n  File \\"a.py\\", line 1, in f")',
        "Traceback (most recent call last):",
        "Traceback (most recent call last): no frame follows | at all",
        "see the Traceback (most recent call last) above | or below",
    ],
)
def test_what_is_quoted_or_no_traceback_stays_one_line(text: str) -> None:
    assert unfolded(text) == [text]


@given(st.text(max_size=80), st.text(max_size=80))
def test_nothing_is_lost_but_line_ends(before: str, after: str) -> None:
    line = before + TRACE.replace("\n", "\\n") + after
    joined = "".join(unfolded(line)).replace("\\n", "")
    assert len(joined) <= len(line)
    assert "capture_model" in joined


@pytest.mark.parametrize("fold", ["\\n", " | "])
def test_whole_records_on_one_line_bring_their_own_headers(fold: str) -> None:
    data = m.corpus("vllm-56785-sparse-mla-event.log").decode()
    rows = [line.rstrip("\r") for line in data.split("\n")]
    lines = [line for line in rows if "[core.py:" in line and "ERROR" in line]
    (apart,) = read_text("\n".join(BEFORE + lines)).runs
    (together,) = read_text("\n".join([*BEFORE, fold.join(lines)])).runs
    assert told(together.nodes) == told(apart.nodes)
    assert [n.stream for n in together.nodes] == [n.stream for n in apart.nodes]
