"""Bytes of two streams into whole lines, in the order in which they became whole."""

from __future__ import annotations

_LONGEST = 1 << 20


class LineAssembler:
    """Cut one stream into lines; a line is never mixed with another stream's."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def push(self, data: bytes) -> list[bytes]:
        """Take in bytes and give the lines that are whole now, each with its newline.

        A line longer than a mebibyte is given in pieces, so that memory stays bounded.
        """
        self._rest += data
        *whole, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        lines = [line + b"\n" for line in whole]
        while len(self._rest) > _LONGEST:
            lines.append(bytes(self._rest[:_LONGEST]))
            del self._rest[:_LONGEST]
        return lines

    def pending(self) -> bytes:
        """Give the line that is not whole yet: a progress bar, a prompt, nothing."""
        return bytes(self._rest)

    def flush(self) -> list[bytes]:
        """Give what is left at the end, closed with a newline."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [rest + b"\n"] if rest else []
