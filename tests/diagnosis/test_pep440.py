"""Our version comparison against the reference implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Reference

from capdoctor.diagnosis.pep440 import check_range, contains, parse

small = st.integers(0, 3)
releases = st.lists(small, min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@st.composite
def versions(draw: st.DrawFn, *, local: bool = True) -> str:
    text = draw(releases)
    if draw(st.booleans()):
        text += draw(st.sampled_from(["a", "b", "rc"])) + str(draw(small))
    if draw(st.booleans()):
        text += f".post{draw(small)}"
    if draw(st.booleans()):
        text += f".dev{draw(small)}"
    if local and draw(st.booleans()):
        text += draw(st.sampled_from(["+cu128", "+g3c1f0a9d2", "+cpu.1"]))
    return text


@given(versions(), versions())
def test_order_is_that_of_packaging(a: str, b: str) -> None:
    ours_a, ours_b = parse(a), parse(b)
    assert ours_a is not None
    assert ours_b is not None
    assert (ours_a.key < ours_b.key) == (Reference(a) < Reference(b))
    assert (ours_a.key == ours_b.key) == (Reference(a) == Reference(b))


@given(versions(), st.sampled_from(["==", "!=", "<=", ">=", "<", ">"]), versions(local=False))
def test_ranges_are_those_of_packaging(version: str, op: str, bound: str) -> None:
    reference = SpecifierSet(op + bound).contains(version, prereleases=True)
    assert contains(op + bound, version) == reference


@given(versions(), st.sampled_from(["==", "!="]), releases)
def test_prefixes_are_those_of_packaging(version: str, op: str, bound: str) -> None:
    reference = SpecifierSet(f"{op}{bound}.*").contains(version, prereleases=True)
    assert contains(f"{op}{bound}.*", version) == reference


@pytest.mark.parametrize(
    ("spec", "version", "inside"),
    [
        (">=0.29,<0.30", "0.29.1rc1.dev187+g3c1f0a9d2", True),
        (">=0.29,<0.30", "0.30.0rc1", False),
        (">0.29.0,<0.30.0", "0.29.0", False),
        ("<0.30", "0.30.0.dev5", False),
        (">=0.25,<0.29", "0.28.1.post1+cu130", True),
        ("", "0.1", True),
        ("<0.1.post1", "0.1.dev0", True),
        ("<0.1.post1", "0.1.post1.dev0", False),
        ("~=0.20.1", "0.20.9", True),
        ("~=0.20.1", "0.21.0", False),
        (">=1", "nightly", False),
    ],
)
def test_nightly_and_local_builds(spec: str, version: str, inside: bool) -> None:
    assert contains(spec, version) is inside


@pytest.mark.parametrize("spec", ["0.29", ">=x", ">=0.29,,<y", "=>1", ">=1.*", "between 1 and 2"])
def test_malformed_range_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="not a version range"):
        check_range(spec)


@given(st.text(max_size=40))
def test_any_text_is_a_version_or_none(text: str) -> None:
    parse(text)
