"""The report that is pasted into an issue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capdoctor.bisection import markdown
from capdoctor.model import BisectAnswer, BisectResult, Culprit, Island, ProbeRun, ProbeVerdict

SHA = "0123456789abcdef0123456789abcdef01234567"
RESULT = BisectResult(
    BisectAnswer.CULPRIT,
    Culprit(SHA, "[Core] <script>alert(1)</script> *a* `b` @everyone", "#12", "2026-01-01T00:00"),
    (SHA,),
    0.9991,
    "s1:aa",
    63,
    12,
    10,
    754.0,
    (ProbeRun(SHA, ProbeVerdict.BAD, "s1:aa", "python overlay", 25.13, "a | b\nc"),),
    (Island(SHA, SHA, 3, "other: [rank0]: boom"),),
    "capdoctor bisect resume x",
    ("0.1.0 is a tag",),
    ("capdoctor repro --model m",),
)


def test_it_holds_what_a_reader_asks_for() -> None:
    text = markdown(RESULT)
    for wanted in (SHA, "#12", "2026-01-01", "99.91%", "s1:aa", "12 min 34 s", "python overlay"):
        assert wanted in text
    assert "capdoctor bisect resume x" in text


def test_text_of_strangers_is_no_markup() -> None:
    text = markdown(RESULT)
    assert "<script>" not in text
    assert "\\[rank0\\]: boom" in text
    assert "a \\| b c" in text
    assert "@everyone" not in text


@pytest.mark.parametrize("answer", list(BisectAnswer))
def test_every_answer_has_its_headline(answer: BisectAnswer) -> None:
    result = BisectResult(answer, None, (), 0.0, None, 1, 0, 0, 0.0)
    assert markdown(result).startswith("## ")


def test_a_long_range_is_cut_and_counted() -> None:
    many = tuple(f"{number:040d}" for number in range(100))
    text = markdown(BisectResult(BisectAnswer.RANGE, None, many, 0.9, None, 100, 9, 9, 1.0))
    assert "Candidates (100)" in text
    assert "and 70 more" in text


@pytest.mark.parametrize("text", ["a `b` c", "``", "x\n## y", "\x1b[31m`<b>`"])
def test_a_code_span_holds_whatever_is_in_it(text: str) -> None:
    shown = markdown(replace(RESULT, resume_command=text)).splitlines()[-1]
    span = shown.removeprefix("Resume: ")
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(fence)
    assert fence not in span[len(fence) : -len(fence)].strip()
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    "hostile", ["~~s~~", "&lt;b&gt;", "<b>", "![x](y)", "\x1b[31m", "a\u202eb"]
)
def test_no_title_reaches_the_page_as_it_is(hostile: str) -> None:
    culprit = Culprit(SHA, hostile, None, "2026-01-01T00:00")
    assert hostile not in markdown(replace(RESULT, culprit=culprit))
