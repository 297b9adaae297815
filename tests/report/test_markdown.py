from __future__ import annotations

from dataclasses import replace

import pytest

from capdoctor.model import ErrorInfo
from capdoctor.report.markdown import code, diagnosis_markdown
from tests.helpers.samples import SPARSE


def test_the_report_holds_the_facts_and_the_advice() -> None:
    text = diagnosis_markdown(SPARSE)
    assert text.startswith("### Crash at start-up: `capture_event_outside_graph`\n")
    for part in ("| stage | `profile_cudagraph_memory` |", "- line 412:", "**Not the cause**"):
        assert part in text
    assert "[Crash \\[in] capture](https://example.invalid/1)" in text


@pytest.mark.parametrize(
    ("text", "inline"),
    [
        ("plain", "`plain`"),
        ("a `b` c", "``a `b` c``"),
        ("`x`", "`` `x` ``"),
        ("``", "``` `` ```"),
        ("", "-"),
        ("two\nlines", "`two lines`"),
    ],
)
def test_code_cannot_be_left_from_inside(text: str, inline: str) -> None:
    assert code(text) == inline


def test_html_and_pipes_of_a_log_are_inert() -> None:
    hostile = replace(
        SPARSE, error=ErrorInfo("X", "a | b <script>alert(1)</script>"), cause="<img src=x> @you"
    )
    text = diagnosis_markdown(hostile)
    assert "a \\| b" in text
    assert "<img" not in text
    assert "@you" not in text
