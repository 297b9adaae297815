"""Follows the frames of zstd data (RFC 8878) to tell a whole file from one that was cut off.

The library ends quietly when its input does, in the middle of a frame too.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capdoctor.logs.packed import Readable

_BETWEEN = 4  # bytes of a magic number; nothing else asks for four
_FRAME = 0xFD2FB528
_SKIPPABLE, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_DICTIONARY_ID = (0, 1, 2, 4)  # bytes, by flag
_CONTENT_SIZE = (0, 2, 4, 8)
_RLE = 1
_Walk = Generator[int, bytes, None]


class Watched:
    """A stream of packed bytes. ``whole``: what was read so far ends where a frame does."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._walk = _frames()
        self._want = next(self._walk)
        self._have = b""
        self._known = True
        self._between = True

    @property
    def whole(self) -> bool:
        """Whether no frame is open; True as well for data that is no zstd."""
        return not self._known or (self._between and not self._have)

    def read(self, size: int = -1, /) -> bytes:
        """Give the next bytes, unchanged."""
        data = self._stream.read(size)
        at = 0
        while self._known and at < len(data):
            at += self._follow(data, at)
        return data

    def _follow(self, data: bytes, at: int) -> int:
        if self._want < 0:  # bytes that are of no interest
            step = min(-self._want, len(data) - at)
            self._want += step
        else:
            step = min(self._want - len(self._have), len(data) - at)
            self._have += data[at : at + step]
        if self._want == 0 or len(self._have) == self._want:
            self._go_on()
        return step

    def _go_on(self) -> None:
        have, self._have = self._have, b""
        try:
            self._want = self._walk.send(have)
        except StopIteration:
            self._known = False
        self._between = self._want == _BETWEEN


def _frames() -> _Walk:
    """Ask for bytes to see (positive) or to skip (negative); ends at data that is no frame."""
    while True:
        magic = int.from_bytes((yield _BETWEEN), "little")
        if magic & _SKIPPABLE_MASK == _SKIPPABLE:
            yield from _skip(int.from_bytes((yield 3) + (yield 1), "little"))
        elif magic == _FRAME:
            yield from _frame()
        else:
            return


def _frame() -> _Walk:
    flags = (yield 1)[0]
    single = flags >> 5 & 1
    size = _CONTENT_SIZE[flags >> 6] or single
    yield from _skip((1 - single) + _DICTIONARY_ID[flags & 3] + size)
    last = False
    while not last:
        head = int.from_bytes((yield 3), "little")
        last, kind = bool(head & 1), head >> 1 & 3
        yield from _skip(1 if kind == _RLE else head >> 3)
    yield from _skip(4 if flags >> 2 & 1 else 0)


def _skip(count: int) -> _Walk:
    if count:
        yield -count
