"""Where logs come from: files, folders, archives, standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from capdoctor.errors import CannotDo
from capdoctor.logs.limits import Limits
from capdoctor.logs.packed import Peeked, Readable, is_damage, unpack

if TYPE_CHECKING:
    import tarfile
    import zipfile

_MEMORY_DEVICES, _NULL = 1, 3  # numbers that Linux gives them
_LAYERS = 4  # a .tar.gz in a .zip has three
_SPOOL = 32 << 20  # bytes of a zip that stay in memory
_HINT = "Give a text log, or one packed with gzip, zstd, xz, bzip2, tar or zip."


class Member:
    """One log of a source. ``name`` is None when the source is the log itself."""

    def __init__(self, name: str | None, compression: str | None, stream: Readable) -> None:
        self.name, self.compression = name, compression
        self.damage: str | None = None
        self._stream = stream
        self._read_any = False

    def read(self, size: int) -> bytes:
        """Give the next bytes; what was read before a damaged place is kept.

        Raises:
            CannotDo: nothing of it can be read.
        """
        try:
            data = self._stream.read(size)
        except Exception as error:  # of any unpacker: told apart here, or raised on
            if not (is_damage(error) and self._read_any):
                raise _explained(error, self.name) from error
            self.damage = "the packed data ends early or is damaged"
            return b""
        self._read_any = self._read_any or bool(data)
        return data


def _explained(error: Exception, name: str | None) -> Exception:
    title = name or "The log"
    if isinstance(error, CannotDo):
        return error
    if is_damage(error):
        return CannotDo(f"{title} is damaged.", _HINT)
    if isinstance(error, OSError):
        return CannotDo(f"{title} cannot be read: {_why(error)}.", _HINT)
    if isinstance(error, RuntimeError | NotImplementedError):  # zipfile: encrypted, odd method
        return CannotDo(
            f"{title} is encrypted or packed in a way unknown here.", "Unpack it first."
        )
    return error


@contextmanager
def open_source(source: str | Path | BinaryIO, limits: Limits) -> Iterator[Iterator[Member]]:
    """Give the logs of a source one after the other.

    Raises:
        CannotDo: there is no such file, or it cannot be opened.
    """
    if not isinstance(source, str | Path):
        yield _members(None, source, limits)
        return
    if str(source) == "-":
        yield _members(None, sys.stdin.buffer, limits)
        return
    path = Path(source)
    if _is_folder(path):
        if not str(source):
            raise CannotDo("The log has no name.", "Name a file, a folder, or - for a pipe.")
        yield _folder(path, limits)
        return
    with _open(path) as file:
        yield _members(None, file, limits)


def _folder(path: Path, limits: Limits) -> Iterator[Member]:
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    for file in files[: limits.members]:
        with _open(file) as stream:
            yield from _members(file.relative_to(path).as_posix(), stream, limits)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long: told when it is opened
        return False


def _is_readable_kind(path: Path) -> bool:
    """A device of the kernel's memory driver (/dev/zero, /dev/urandom) never ends."""
    if path.is_char_device():
        device = path.stat().st_rdev
        return os.major(device) != _MEMORY_DEVICES or os.minor(device) == _NULL
    return path.is_file() or path.is_fifo()


def _open(path: Path) -> BinaryIO:
    try:
        if path.exists() and not _is_readable_kind(path):
            raise CannotDo(f"{path} is neither a log nor a folder.", "Name the log itself.")
        return path.open("rb")
    except OSError as error:
        raise CannotDo(f"{path} cannot be read: {_why(error)}.", "Check the name.") from error
    except ValueError as error:  # a NUL in the name
        raise CannotDo("The name of the log is no file name.", "Check the name.") from error


def _members(name: str | None, stream: Readable, limits: Limits) -> Iterator[Member]:
    packed: list[str] = []
    for _ in range(_LAYERS):
        try:
            peeked = Peeked(stream)
            layer, inner = unpack(peeked)
        except Exception as error:  # of any unpacker: told apart in _explained, or raised on
            raise _explained(error, name) from error
        if inner is None:
            yield Member(name, "+".join(packed) or None, peeked)
            return
        packed.append(layer)
        if layer in {"zip", "tar"}:
            yield from (_zip if layer == "zip" else _tar)(name, inner, limits)
            return
        stream = inner
    raise CannotDo(f"{name or 'The log'} is packed too many times.", "Unpack it first.")


def _zip(name: str | None, stream: Readable, limits: Limits) -> Iterator[Member]:
    import tempfile
    import zipfile

    with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as spool:
        while block := stream.read(1 << 20):
            spool.write(block)
        spool.seek(0)
        try:
            archive = zipfile.ZipFile(cast("IO[bytes]", spool))
        except zipfile.BadZipFile as error:
            raise CannotDo(f"{name or 'The archive'} is damaged.", _HINT) from error
        with archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            for entry in sorted(entries, key=_entry_name)[: limits.members]:
                title = _join(name, entry.filename)
                try:
                    inner = archive.open(entry)
                except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                    raise _explained(error, title) from error
                with inner:
                    yield from _members(title, inner, limits)


def _tar(name: str | None, stream: Readable, limits: Limits) -> Iterator[Member]:
    import tarfile

    with tarfile.open(fileobj=cast("BinaryIO", stream), mode="r|") as archive:
        count = 0
        while (entry := _next(archive, name)) is not None and count < limits.members:
            inner = archive.extractfile(entry) if entry.isfile() else None
            if inner is not None:
                count += 1
                yield from _members(_join(name, entry.name), cast("Readable", inner), limits)


def _next(archive: tarfile.TarFile, name: str | None) -> tarfile.TarInfo | None:
    try:
        return archive.next()
    except Exception as error:  # of any unpacker: told apart in _explained, or raised on
        raise _explained(error, name) from error


def _entry_name(entry: zipfile.ZipInfo) -> str:
    return entry.filename


def _join(outer: str | None, inner: str) -> str:
    return f"{outer}/{inner}" if outer else inner


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
