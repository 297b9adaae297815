"""Packed streams: told by their first bytes, unpacked as they are read.

The modules that unpack are imported when they are needed: most logs are plain.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import BinaryIO, Protocol, cast

_PEEK = 512
_PIECE = 64 << 10  # bytes that are unpacked at a time: what a damaged place can cost
_INPUT = 4 << 10  # packed bytes that are given to an unpacker at a time, for the same reason
# Errors of modules that may not be imported, by name.
_DAMAGE = {"ZstdError", "LZMAError", "BadGzipFile", "BadZipFile", "ReadError", "TarError"}


class Readable(Protocol):
    """Anything that gives bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Give up to ``size`` bytes, none at the end."""
        ...


class _Unpacker(Protocol):
    """What lzma and bz2 have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes: ...


def is_damage(error: Exception) -> bool:
    """Whether an error says that packed data is damaged or ends early."""
    known = isinstance(error, EOFError | zlib.error)
    return known or any(kind.__name__ in _DAMAGE for kind in type(error).__mro__)


class Peeked:
    """A stream whose first bytes were looked at; an error behind them waits for its turn."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._error: Exception | None = None
        self.head = b""
        while len(self.head) < _PEEK and (more := self._more()):
            self.head += more
        self._rest = self.head

    def read(self, size: int = -1, /) -> bytes:
        """Give the bytes that were looked at, then the others."""
        if not self._rest:
            if self._error is not None:
                raise self._error
            return self._stream.read(size)
        if size < 0:
            data, self._rest = self._rest, b""
            return data + self.read()
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _more(self) -> bytes:
        try:
            return self._stream.read(_PEEK - len(self.head))
        except Exception as error:  # of any unpacker: told apart by is_damage
            if not (self.head and is_damage(error)):
                raise
            self._error = error
            return b""


def unpack(stream: Peeked) -> tuple[str, Readable | None]:
    """Name the outermost packing and give what is inside; the stream itself for an archive."""
    head = stream.head
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip", stream
    if head[257:262] == b"ustar":
        return "tar", stream
    if head.startswith(b"BZh") and head[4:10] == b"1AY&SY":  # between them the level
        return "bzip2", _bzip2(stream)
    for magic, name, opener in _PACKINGS:
        if head.startswith(magic):
            return name, opener(stream)
    return "", None


class _Steady:
    """Gives all that was unpacked before a damaged place; only the next read raises."""

    def __init__(self, pull: Callable[[int], bytes]) -> None:
        self._pull = pull
        self._error: Exception | None = None

    def read(self, size: int = -1, /) -> bytes:
        if self._error is not None:
            raise self._error
        out = io.BytesIO()
        while size < 0 or out.tell() < size:
            try:
                data = self._pull(_PIECE if size < 0 else min(_PIECE, size - out.tell()))
            except Exception as error:  # of any unpacker: told apart by is_damage
                if not (out.tell() and is_damage(error)):
                    raise
                self._error = error
                break
            if not data:
                break
            out.write(data)
        return out.getvalue()


class _Chunks:
    """The files of lzma and bz2 need to seek; this does not."""

    def __init__(self, make: Callable[[], _Unpacker], raw: Readable) -> None:
        self._make, self._raw = make, raw
        self._unpacker = make()
        self._buffer = b""

    def pull(self, size: int) -> bytes:
        """Give some bytes, none at the end."""
        while True:
            if self._unpacker.eof:
                self._buffer = (self._buffer + self._unpacker.unused_data).lstrip(b"\x00")
                if not self._refill():
                    return b""
                self._unpacker = self._make()
            elif self._unpacker.needs_input and not self._refill():
                raise EOFError("the packed data ends early")
            data, self._buffer = self._buffer, b""
            if out := self._decompress(data, size):
                return out

    def _decompress(self, data: bytes, size: int) -> bytes:
        try:
            return self._unpacker.decompress(data, size)
        except OSError as error:  # what bz2 raises for damaged data
            raise EOFError(str(error)) from error

    def _refill(self) -> bool:
        if not self._buffer:
            self._buffer = self._raw.read(_INPUT)
        return bool(self._buffer)


def _gzip(stream: Readable) -> Readable:
    import gzip

    return _Steady(gzip.GzipFile(fileobj=cast("BinaryIO", stream)).read1)


def _zstd(stream: Readable) -> Readable:
    import zstandard

    from capdoctor.logs.zstdframes import Watched

    watched = Watched(stream)
    raw = cast("BinaryIO", watched)
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)

    def pull(size: int) -> bytes:
        data = reader.read(size)
        if not data and not watched.whole:
            raise EOFError("the packed data ends early")
        return data

    return _Steady(pull)


def _xz(stream: Readable) -> Readable:
    import lzma

    return _Steady(_Chunks(lzma.LZMADecompressor, stream).pull)


def _bzip2(stream: Readable) -> Readable:
    import bz2

    return _Steady(_Chunks(bz2.BZ2Decompressor, stream).pull)


_PACKINGS: tuple[tuple[bytes, str, Callable[[Readable], Readable]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
    (b"\xfd7zXZ\x00", "xz", _xz),
)
