"""The embedded engine under the tracer: the virtual device and the tracer accuse the same line."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capdoctor.capture.engine_log import EngineLog
from capdoctor.capture.tracer import read_trace
from capdoctor.engines.embedded import engine, list_demos, settings_for
from capdoctor.engines.embedded.main import run_engine_core
from capdoctor.model import CaptureTrace, EngineSpec, Finding, OffenceKind

# The device judges a fork where the capture ends; the tracer goes back to where it began.
FORK = "unjoined-stream"
WITHOUT_OFFENDER = ("clean", "metadata-error")


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the virtual device itself found."""
    found: list[Finding] = []
    real = engine.device_for

    @contextlib.contextmanager
    def device_for(settings: Any) -> Iterator[Any]:
        with real(settings) as device:
            try:
                yield device
            finally:
                found.extend(device.findings)

    monkeypatch.setattr(engine, "device_for", device_for)
    return found


def start(demo: str, folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    if folder is None:
        monkeypatch.delenv("CAPDOCTOR_TRACE_DIR", raising=False)
    else:
        monkeypatch.setenv("CAPDOCTOR_TRACE_DIR", str(folder))
    log = io.StringIO()
    settings = settings_for(EngineSpec(kind="embedded", model=f"demo/{demo}"))
    code = run_engine_core(settings, EngineLog(log))
    return code, log.getvalue()


def traced(demo: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> CaptureTrace:
    start(demo, folder, monkeypatch)
    trace = read_trace(folder)
    assert trace is not None
    assert trace.faults == ()
    return trace


@pytest.mark.parametrize("demo", [d.name for d in list_demos() if d.name not in WITHOUT_OFFENDER])
def test_the_same_line_is_accused_as_by_the_device(
    demo: str, tmp_path: Path, findings: list[Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    offence = traced(demo, tmp_path, monkeypatch).first
    assert offence is not None
    place = offence.call.place
    assert place is not None
    if demo == FORK:
        assert (offence.kind, place.function) == (OffenceKind.UNJOINED, "start_prefetch")
    elif demo != "oom":  # no rule is broken there: the device is full
        assert (place.file, place.line) == (findings[0].file, findings[0].line)


@pytest.mark.parametrize("demo", WITHOUT_OFFENDER)
def test_nothing_is_accused_where_no_operation_broke_a_capture(
    demo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert traced(demo, tmp_path, monkeypatch).offences == ()


@pytest.mark.parametrize("demo", [d.name for d in list_demos()])
def test_the_log_is_the_same_as_without_the_tracer(
    demo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = start(demo, None, monkeypatch)
    with_tracer = start(demo, tmp_path, monkeypatch)
    assert plain[0] == with_tracer[0]
    assert _traceback(plain[1]) == _traceback(with_tracer[1])


def _traceback(log: str) -> list[str]:
    lines = [re.sub(r"^.*?\] ", "", line) for line in log.splitlines() if "ERROR" in line]
    return [line for line in lines if line.strip()]


def test_other_threads_call_is_found_by_the_exception_that_it_hands_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offence = traced("other-thread", tmp_path, monkeypatch).first
    assert offence is not None
    assert offence.kind is OffenceKind.OTHER_THREAD
    assert offence.call.place is not None
    assert offence.call.place.function == "_upload"
