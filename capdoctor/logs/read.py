"""The front door: a log in any wrapping to a `ParsedLog`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from capdoctor.errors import CannotDo
from capdoctor.logs.blocks import BlockReader
from capdoctor.logs.limits import DEFAULT_LIMITS, Limits
from capdoctor.logs.sources import Member, open_source
from capdoctor.logs.text import clean
from capdoctor.logs.values import ParsedLog

Source = str | Path | BinaryIO


def read_log(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> ParsedLog:
    """Read one log: a file (plain, gz, zst, xz, bz2, zip with one member), ``-`` or a stream.

    Raises:
        CannotDo: it cannot be read, is empty, is damaged, or holds several logs.
    """
    found: ParsedLog | None = None
    for log in read_logs(source, limits=limits):
        if found is not None:
            raise CannotDo(
                f"{_name(source)} holds several logs.",
                "Name one of them, or read them all as a group.",
            )
        found = log
    if found is None:
        raise CannotDo(f"{_name(source)} is empty.", "Check that the log was written to it.")
    return found


def read_logs(source: Source, *, limits: Limits = DEFAULT_LIMITS) -> Iterator[ParsedLog]:
    """Read every log of a folder or archive in the order of their names; else as `read_log`.

    Empty and binary members are skipped.

    Raises:
        CannotDo: the source cannot be read, or holds no log.
    """
    count = 0
    with open_source(source, limits) as members:
        for member in members:
            log = _read(member, _name(source), limits)
            if log.total_bytes and not (log.binary and member.name is not None):
                count += 1
                yield log
    if not count:
        raise CannotDo(f"{_name(source)} holds no log.", "Check that the log was written to it.")


def read_text(text: str | bytes, *, limits: Limits = DEFAULT_LIMITS) -> ParsedLog:
    """Read a log that is in memory already; never raises, an empty text gives no runs."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    reader = BlockReader(limits)
    for start in range(0, len(data), limits.block):
        reader.feed(data[start : start + limits.block])
    return reader.finish("<text>")


def _read(member: Member, source: str, limits: Limits) -> ParsedLog:
    reader = BlockReader(limits)
    while block := member.read(limits.block):
        reader.feed(block)
    name = None if member.name is None else clean(member.name)
    return reader.finish(source, name, member.compression, member.damage)


def _name(source: Source) -> str:
    if isinstance(source, str | Path):
        return "standard input" if str(source) == "-" else str(source)
    return str(getattr(source, "name", "<stream>"))
