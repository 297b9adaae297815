"""Pastes: quotes made smart, brackets made entities, line ends doubled, lost or spelled out."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

import pytest

from capdoctor.logs import read_text
from tests.logs import mutations as m

LOG = "vllm-56785-sparse-mla-event.log"


def smart(data: bytes) -> bytes:
    return re.sub(r'File "([^"]*)"', "File \u201c\\1\u201d", data.decode()).encode()


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "smart quotes": smart,
    "entities": lambda d: html.escape(d.decode()).encode(),
    "entities, quotes kept": lambda d: html.escape(d.decode(), quote=False).encode(),
    "no-break spaces": lambda d: d.decode().replace(" ", "\u00a0").encode(),
    "zero width": lambda d: d.replace(b"\n", "\n\u200b".encode()),
    "trailing blanks": lambda d: d.replace(b"\n", b"   \n"),
    "doubled line ends": lambda d: d.replace(b"\n", b"\n\n"),
    "carriage returns alone": lambda d: d.replace(b"\n", b"\r"),
    "a Python literal": lambda d: repr(d.decode()).encode(),
    "a JSON string": lambda d: json.dumps(d.decode()).encode(),
    "a JSON list": lambda d: json.dumps(d.decode().split("\n")).encode(),
    "backslash n": lambda d: d.replace(b"\n", b"\\n"),
    "fenced": lambda d: b"Hi, it crashes:\n\n```\n" + d + b"```\nany idea?\n",
    "details": lambda d: b"<details>\n\n```text\n" + d + b"```\n\n</details>\n",
    "UTF-16": lambda d: d.decode().encode("utf-16"),
    "spelled-out escapes": lambda d: d.replace(b"ERROR", b"\\x1b[31mERROR\\x1b[0m"),
    "JSON escapes": lambda d: d.replace(b"ERROR", b"\\u001b[31mERROR\\u001b[0m"),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_pasted_logs_tell_the_same_story(change: str) -> None:
    data = b"".join(line.rstrip(b"\r") + b"\n" for line in m.lines_of(m.corpus(LOG)))
    data = m.last_segments(data)
    assert m.told(CHANGES[change](data)) == m.told(data)


def test_literal_in_a_long_log_stays_what_a_message_quotes() -> None:
    quoted = (
        "said: 'Traceback (most recent call last):\\n  File \"a.py\", line 1, in f\\nOSError: x'"
    )
    (run,) = read_text("one\ntwo\nthree\n" + quoted + "\n").runs
    assert run.lines[-1].text == quoted


def test_entities_in_a_log_that_is_no_web_page_stay() -> None:
    (run,) = read_text("ValueError: &lt;pad&gt; is no token\n").runs
    assert run.nodes[0].message == "&lt;pad&gt; is no token"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: {"log": x, "stream": "stdout", "kubernetes": {"pod_name": "vllm-0"}},
        lambda x: {"labels": {"app": "vllm"}, "line": x, "timestamp": "2025-08-19T18:34:30Z"},
        lambda x: {"textPayload": x, "severity": "ERROR"},
        lambda x: {"jsonPayload": {"message": x}, "severity": "ERROR"},
        lambda x: {"ts": "2025", "level": "info", "msg": x},
        lambda x: {"@timestamp": "2025", "message": x, "log.level": "error"},
        lambda x: {"MESSAGE": list(x.encode()), "_PID": "7"},
    ],
)
@pytest.mark.parametrize(
    "front", ["", "2025-08-19T18:34:30.0Z\tkube.var.log\t", "[7] k: [[1.1, {}], "]
)
def test_json_of_shippers_is_unpacked(wrap: Callable[[str], object], front: str) -> None:
    lines = [line.decode().rstrip("\r") for line in m.lines_of(m.last_segments(m.corpus(LOG)))]
    end = "]" if front.startswith("[") else ""
    data = "".join(f"{front}{json.dumps(wrap(line))}{end}\n" for line in lines)
    assert m.told(data.encode()) == m.told("\n".join(lines).encode() + b"\n")
