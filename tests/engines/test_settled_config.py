"""The configuration that an engine prints, and starts that are the same to it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.listener import Quiet
from capdoctor.engines.settled_config import ConfigListener, SameStart, SettledConfig
from capdoctor.model import Stage

START = "(EngineCore pid=7) INFO [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


def printed(mode: str) -> str:
    """Give a configuration as the releases since 0.11 print it."""
    shown = f"<CUDAGraphMode.{mode}: (2, 1)>"
    return f"{START}model='m', compilation_config={{'mode': 3, 'cudagraph_mode': {shown}, 'x': []}}"


def read(*lines: str) -> SettledConfig:
    config = SettledConfig()
    for line in lines:
        config.take_in(line)
    return config


@given(st.sampled_from(MODES), st.sampled_from(MODES))
def test_a_mode_that_is_resolved_to_another_is_the_same_as_asking_for_that_one(
    asked: str, resolved: str
) -> None:
    changed = f"CUDAGraphMode.{asked} is not supported; setting cudagraph_mode={resolved}"
    assert read(printed(asked), changed).settled == read(printed(resolved)).settled
    assert (read(printed(asked)).settled == read(printed(resolved)).settled) == (asked == resolved)


@pytest.mark.parametrize(
    "line",
    [
        f"{START}model='x'",  # a release that does not say its mode
        "INFO cudagraph_mode=FULL",
        "",
    ],
)
def test_nothing_is_said_about_what_is_not_printed(line: str) -> None:
    config = read(line)
    assert config.asked is None
    assert config.settled is None


def test_a_line_of_the_embedded_engine_is_read_as_well() -> None:
    line = "INFO Initializing a V1 LLM engine (embedded engine, virtual device; capdoctor 1) with"
    config = read(f"{line} config: model='m', cudagraph_mode=NONE, cudagraph_capture_sizes=[1]")
    assert config.settled == "model='m', cudagraph_mode=NONE, cudagraph_capture_sizes=[1]"


def test_a_start_that_asks_for_the_same_is_ended_at_once() -> None:
    known = read(printed("FULL")).asked or ""
    listener = ConfigListener(Quiet(), {known: "as asked"}, {})
    with pytest.raises(SameStart) as caught:
        listener.line_printed(printed("FULL"), 3.0)
    assert (caught.value.name, caught.value.seconds) == ("as asked", 3.0)


def test_a_start_that_settles_on_the_same_is_ended_before_it_captures() -> None:
    known = read(printed("FULL_DECODE_ONLY")).settled or ""
    listener = ConfigListener(Quiet(), {}, {known: "FULL_DECODE_ONLY"})
    listener.line_printed(printed("FULL"), 1.0)
    listener.stage_began(Stage.PROFILE_RUN, 2.0)
    listener.line_printed("setting cudagraph_mode=CUDAGraphMode.FULL_DECODE_ONLY", 3.0)
    with pytest.raises(SameStart):
        listener.stage_began(Stage.PROFILE_CUDAGRAPH_MEMORY, 4.0)


def test_what_may_still_be_resolved_otherwise_is_not_taken_for_the_same() -> None:
    known = read(printed("FULL")).settled or ""
    listener = ConfigListener(Quiet(), {}, {known: "FULL"})
    listener.line_printed(printed("FULL"), 1.0)
    listener.stage_began(Stage.PROFILE_RUN, 2.0)
    listener.stage_began(Stage.KV_CACHE, 2.5)
    listener.line_printed("setting cudagraph_mode=PIECEWISE", 3.0)
    listener.stage_began(Stage.CAPTURE, 4.0)
    assert listener.config.resolved == "PIECEWISE"


def test_a_line_made_to_be_slow_is_not_searched() -> None:
    config = SettledConfig()
    begin = time.monotonic()
    config.take_in("Initializing a V1 LLM engine (" * 50_000)
    assert time.monotonic() - begin < 1
    assert config.asked is None
