"""A file taken apart and put together is the same file, whatever stands at its ends."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdoctor.errors import CannotDo
from capdoctor.vendored_fixes.layout import Layout

LINES = st.sampled_from(
    [
        "",
        "# a remark",
        "x = 1",
        "x = 1; y = 2",
        "if x:\n    y = 1",
        "def f():\n    return 1",
        "   ",
        "\f",
    ]
)


@given(
    lines=st.lists(LINES, max_size=8), end=st.sampled_from(["\n", "\r\n", "\r"]), last=st.booleans()
)
def test_nothing_is_lost(lines: list[str], end: str, last: bool) -> None:
    text = "\n".join(lines) + ("\n" if last else "")
    data = text.replace("\n", end).encode()
    try:
        compile(data, "x", "exec")
    except SyntaxError:
        return
    layout = Layout.of("x.py", data)
    assert layout.dump(layout.module) == data


def test_statements_know_their_lines() -> None:
    layout = Layout.of("x.py", b"# head\n\nx = 1\n\n\n# above f\ndef f():\n    pass\n# end\n")
    assert [(first, last) for _, first, last in layout.statements()] == [(3, 3), (4, 8)]


def test_a_byte_order_mark_and_a_cookie_stay() -> None:
    for data in (codecs.BOM_UTF8 + b"x = 1\r\n", b"# coding: latin-1\nx = '\xe9'\n"):
        layout = Layout.of("x.py", data)
        assert layout.dump(layout.module) == data


def test_what_libcst_cannot_read_is_refused() -> None:
    with pytest.raises(CannotDo, match=r"LibCST cannot read x\.py"):
        Layout.of("x.py", b"x = (\n")
