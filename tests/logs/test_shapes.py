"""Marks of collectors that have no pattern of their own are learned from the log itself."""

from __future__ import annotations

import pytest

from capdoctor.logs import read_text
from capdoctor.logs.shapes import learn_front
from tests.logs import mutations as m

LOGS = ["vllm-17939-sampler-oom", "vllm-20361-undefined-symbol", "vllm-56785-sparse-mla-event"]
FRONTS = {
    "short-full": "Tue 2025-08-19 18:34:{s} UTC gpu-7 vllm[8707]: ",
    "short-monotonic": "[12345.0000{s}] gpu-7 vllm[8707]: ",
    "short-unix": "1755628470.0000{s} gpu-7 vllm[8707]: ",
    "RFC 5424": "<14>1 2025-08-19T18:34:{s}.123Z gpu-7 vllm 8707 - - ",
    "rsyslog": "2025-08-19T18:34:{s}.123456+02:00 gpu-7 vllm: ",
    "logcli": '2025-08-19T18:34:{s}Z {{app="vllm", pod="vllm-0"}} ',
    "aws logs tail": "2025-08-19T18:34:{s}.123000+00:00 vllm/server/0a1b2c3d ",
    "ts": "Aug 19 18:34:{s} ",
    "ts -s": "00:01:{s} ",
    "ts in brackets": "[2025-08-19 18:34:{s}] ",
    "slashes": "2025/08/19 18:34:{s} ",
    "mpirun": "[1,0]<stderr>:",
    "swarm": "vllm_server.1.k3j4h5@node-1    | ",
    "compose, long name": "my-openai-vllm-server-with-a-very-long-name-prod  | ",
    "stern": "vllm-6f7d-abc server ",
    "stern, new": "vllm-6f7d-abc \u203a server ",
    "kubetail": "[vllm-6f7d-abc] ",
    "pm2": "0|vllm  | ",
    "foreman": "18:34:{s} vllm.1   | ",
    "GitHub run": "build\tRun vllm\t2025-08-19T18:34:{s}.1234567Z ",
    "GitLab": "2025-08-19T18:34:{s}.123456Z 00O ",
    "grep -n": "{n}:",
    "grep -n file": "vllm.log:{n}:",
    "cat -n": "{n:6d}\t",
    "less -N": "{n:7d} ",
    "numbered": "{n:4d} | ",
    "markdown, four spaces": "    ",
    "quoted twice": "> > ",
    "diff": "+",
    "a parent's tag": "[vllm stderr] ",
}


@pytest.mark.parametrize("stem", LOGS)
@pytest.mark.parametrize("front", sorted(FRONTS))
def test_any_front_that_every_line_has_is_peeled(front: str, stem: str) -> None:
    data = m.corpus(f"{stem}.log")
    lines = [
        FRONTS[front].format(s=f"{n % 60:02d}", n=n).encode() + line
        for n, line in enumerate(m.lines_of(data), 1)
    ]
    assert shape(m.joined(lines)) == shape(data)


def shape(data: bytes) -> list[tuple[object, ...]]:
    """Without stream names: a front may name the container."""
    nodes = [node for run in read_text(data).runs for node in run.nodes]
    return [(n.type, n.message, [(f.path, f.line, f.function) for f in n.frames]) for n in nodes]


@pytest.mark.parametrize(
    "lines",
    [
        ["key: a", "key: b", "key: c", "key: d"],
        ["Error: a", "Error: b", "Error: c"],
        ["(EngineCore pid=1) ERROR 11-20 03:14:13 [m.py:9] a"] * 5,
        ["(EngineCore pid=1) Traceback (most recent call last):", "(EngineCore pid=1) x"] * 3,
        ["INFO 11-20 03:14:13 [m.py:9] a", "INFO 11-20 03:14:14 [m.py:9] b"] * 3,
        ["[2025-08-19 18:34:30 TP0] Load weight begin", "[2025-08-19 18:34:31 TP0] x"] * 3,
        ["[2025-08-19 18:34:30] INFO:     GET /health", "[2025-08-19 18:34:31] INFO:     x"] * 3,
        ['  File "a.py", line 1, in f', '  File "b.py", line 2, in g', '  File "c.py", line 2'],
        ["a", "b"],
        [],
    ],
)
def test_what_the_log_itself_repeats_is_no_front(lines: list[str]) -> None:
    assert learn_front(lines) is None
