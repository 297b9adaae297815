"""Bytes into lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capdoctor.engines.lines import LineAssembler


@given(st.binary(max_size=400), st.lists(st.integers(1, 40), max_size=20))
def test_no_byte_is_lost_however_the_stream_is_cut(data: bytes, cuts: list[int]) -> None:
    assembler = LineAssembler()
    lines, place = [], 0
    for cut in [*cuts, len(data)]:
        lines += assembler.push(data[place : place + cut])
        place += cut
    lines += assembler.flush()
    joined = b"".join(lines)
    assert joined == (data if not data or data.endswith(b"\n") else data + b"\n")
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


def test_carriage_returns_do_not_end_a_line() -> None:
    assembler = LineAssembler()
    assert assembler.push(b"1/3\r2/3\r") == []
    assert assembler.pending() == b"1/3\r2/3\r"
    assert assembler.push(b"3/3\r\n") == [b"1/3\r2/3\r3/3\r\n"]
    assert assembler.pending() == b""


def test_memory_stays_bounded_without_any_newline() -> None:
    assembler = LineAssembler()
    pieces = [piece for _ in range(40) for piece in assembler.push(b"x" * 65536)]
    assert len(pieces) == 2
    assert len(assembler.pending()) <= 1 << 20
