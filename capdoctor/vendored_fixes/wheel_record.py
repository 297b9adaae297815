"""The RECORD of a wheel install: hash and size of each file, kept true when a file changes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path


def owning_records(folder: Path) -> tuple[Path, ...]:
    """Give the RECORD files beside the package that list files of it."""
    prefix = f"{folder.name}/".encode()
    found = []
    for path in sorted(folder.parent.glob("*.dist-info/RECORD")):
        data = path.read_bytes()
        if data.startswith((prefix, b'"' + prefix)) or b"\n" + prefix in data:
            found.append(path)
    return tuple(found)


def with_rows(record: bytes, changed: Mapping[str, bytes]) -> bytes:
    """Give ``record`` with true hashes and sizes for ``changed`` (name as in RECORD to bytes).

    Other rows keep their bytes; a row without a hash stays without; names that RECORD does not
    list are not added. The algorithm of a row stays what it was.
    """
    lines = record.splitlines(keepends=True)
    return b"".join(_line(line, changed) for line in lines)


def with_old_rows(record: bytes, before: bytes, names: frozenset[str]) -> bytes:
    """Give ``record`` with the rows of ``names`` as they stood in ``before``."""
    old = {name: line for line in before.splitlines(keepends=True) if (name := _name(line))}
    lines = record.splitlines(keepends=True)
    return b"".join(
        old.get(name, line) if (name := _name(line)) in names else line for line in lines
    )


def _line(line: bytes, changed: Mapping[str, bytes]) -> bytes:
    row = _row(line)
    match row:
        case [name, digest, _] if name in changed and "=" in digest:
            algorithm = digest.partition("=")[0]
            if algorithm in hashlib.algorithms_available:
                true = [name, _digest(algorithm, changed[name]), str(len(changed[name]))]
                return _write(true) + line[len(line.rstrip(b"\r\n")) :]
    return line


def _row(line: bytes) -> list[str]:
    return next(csv.reader([line.decode("utf-8", "surrogateescape").rstrip("\r\n")]), [])


def _name(line: bytes) -> str:
    row = _row(line)
    return row[0] if row else ""


def _digest(algorithm: str, data: bytes) -> str:
    raw = hashlib.new(algorithm, data).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"


def _write(row: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(row)
    return out.getvalue().encode("utf-8", "surrogateescape")
