"""The texts noted for a pattern are in everything that the pattern finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdoctor.diagnosis.hints import needed_texts
from capdoctor.diagnosis.tables import regex_hints


@pytest.mark.parametrize("pattern", sorted(regex_hints()))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_match_has_one_of_the_texts(pattern: str, data: st.DataObject) -> None:
    example = data.draw(st.from_regex(re.compile(pattern, re.IGNORECASE | re.MULTILINE)))
    # Characters such as the long s fold to ASCII only for the regular expression.
    if example.isascii():
        assert any(text in example.lower() for text in regex_hints()[pattern])


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("abcd.*efghij", ["efghij"]),
        ("(abcd|efgh)x", ["abcd", "efgh"]),
        ("(abcd)?efg", ["efg"]),
        ("(abcd)+", ["abcd"]),
        (r"\d+", []),
        ("ab", []),
        ("(abcd|e*)", []),
    ],
)
def test_texts_of_small_patterns(pattern: str, texts: list[str]) -> None:
    assert needed_texts(pattern) == texts
