from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.report.safe_text import one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="colour"),
        pytest.param("\x1b]0;title\x07", "\\x1b]0;title\\x07", id="title sequence"),
        pytest.param("a\x00b", "a\\x00b", id="nul"),
        pytest.param("a\rb", "a\\x0db", id="carriage return would overwrite the line"),
        pytest.param("\x9b31m", "\\x9b31m", id="one-byte CSI"),
        pytest.param("\u202eabc", "\\u202eabc", id="right-to-left override"),
        pytest.param("[rank0]: [bold]x[/bold]", "[rank0]: [bold]x[/bold]", id="markup stays text"),
        pytest.param("two\nlines\tand a tab", "two\nlines\tand a tab", id="lines and tabs stay"),
        pytest.param("é 漢 🙂", "é 漢 🙂", id="other scripts stay"),
    ],
)
def test_controls_are_written_out_and_text_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_no_control_character_survives(text: str) -> None:
    assert not any(ord(c) < 32 and c not in "\n\t" for c in printable(text))
    assert "\x1b" not in printable(text)


@given(st.text(), st.integers(min_value=1, max_value=80))
def test_one_line_is_one_line_within_the_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert "\n" not in line
    assert len(line) <= limit


def test_a_lone_surrogate_can_be_written_as_utf8() -> None:
    assert printable("\udc80").encode()
