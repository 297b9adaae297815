"""A log made to hurt costs seconds at most and is answered."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.diagnosis import diagnose_parsed, store
from capdoctor.errors import CannotDo
from capdoctor.logs import read_text
from capdoctor.model import Verdict
from tests.diagnosis.expected import expected_logs

START = "(EngineCore pid=9) INFO 08-12 10:00:01 [core.py:93] Initializing a V1 LLM engine (v0.29.0)"
START += " with config: x\n"
CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
SECONDS = 4.0


def trace(number: int) -> str:
    name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return (
        "Traceback (most recent call last):\n"
        f'  File "/x/vllm/{name}.py", line {number}, in {name}\n    g()\nValueError: {name}\n'
    )


HOSTILE = {
    "many tracebacks": "".join(trace(number) for number in range(4000)),
    "one long chain": CONTEXT.join(trace(number) for number in range(2000)),
    "many restarts": (START + trace(3)) * 1000,
    "many deaths": "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting\n" * 4000,
    "many follow-ons": "RuntimeError: Worker failed with error 'x', please check\n" * 4000,
    "markup": "[bold red]\x1b]0;title\x07[/] \x00 <script>\n" * 200 + trace(1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_is_answered_in_time(name: str) -> None:
    log = read_text(START + HOSTILE[name])
    begin = time.process_time()
    diagnosis = diagnose_parsed(log, store.load(), None)
    assert time.process_time() - begin < SECONDS
    assert diagnosis.verdict in set(Verdict)


LOGS = [one.log for one in expected_logs()][::7]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LOGS), st.floats(0, 1), st.floats(0, 1), st.binary(max_size=40))
def test_damaged_logs_are_survived(log: Path, end: float, spot: float, junk: bytes) -> None:
    data = log.read_bytes()
    cut = int(end * len(data))
    at = int(spot * cut)
    parsed = read_text(data[:at] + junk + data[at:cut])
    try:
        diagnosis = diagnose_parsed(parsed, store.load(), None)
    except CannotDo:
        assert parsed.binary
        return
    assert diagnosis.confidence in {"confirmed", "likely", "possible", "unknown"}
