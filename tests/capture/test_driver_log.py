from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.capture.driver_log import parse_calls, read_calls

HEAD = "[16:21:14.429][140708622714304][CUDA][E] "
RETURNING = "Returning 900 (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) from cuMemHostAlloc"


def test_a_refused_call_has_its_reasons_and_thread() -> None:
    (call,) = parse_calls(f"{HEAD}first\n{HEAD}second\n{HEAD}{RETURNING}\n")
    assert (call.thread, call.code, call.api) == ("140708622714304", 900, "cuMemHostAlloc")
    assert call.name == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    assert call.sentences == ("first", "second", RETURNING)
    assert len(call.lines) == 3


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_sentence_that_lost_its_line_end_does_not_swallow_the_next(cut: int) -> None:
    reason = "Kernel (K) cannot be found in library due to compilation error"[:-cut]
    (call,) = parse_calls(f"{HEAD}{reason}{HEAD}{RETURNING}\n")
    assert call.sentences == (reason.strip(), RETURNING)


def test_reasons_of_threads_are_kept_apart() -> None:
    other = HEAD.replace("140708622714304", "7")
    calls = parse_calls(f"{HEAD}mine\n{other}theirs\n{HEAD}{RETURNING}\n")
    assert [call.reasons for call in calls] == [("mine",), ("theirs",)]
    assert calls[1].api == ""


def test_a_fifth_bracket_is_no_part_of_the_sentence() -> None:
    (call,) = parse_calls(f"{HEAD.rstrip()}[cuMemHostAlloc] {RETURNING}\n")
    assert call.sentences == (RETURNING,)


def test_what_is_no_line_of_the_driver_is_left_out() -> None:
    assert parse_calls(f"INFO hello\n[x] y\n{RETURNING}\n") == ()


def test_a_log_that_is_not_there_has_no_calls(tmp_path: Path) -> None:
    assert read_calls(None) == ()
    assert read_calls(tmp_path / "none") == ()
    assert read_calls(tmp_path) == ()


PARTS = st.sampled_from([*"[]:0123456789.CUDAE \n", HEAD, RETURNING])


@given(st.lists(PARTS, max_size=60).map("".join))
def test_no_text_breaks_the_reader_and_none_is_made_up(text: str) -> None:
    for call in parse_calls(text):
        assert all(line in text for line in call.lines)
