"""Blocks of bytes to a `ParsedLog`: all lines of a small log, the right ones of a large one."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from capdoctor.logs.boxes import unboxed
from capdoctor.logs.limits import Limits
from capdoctor.logs.needles import Look, Searcher, needle_looks
from capdoctor.logs.pasted import expanded, restored
from capdoctor.logs.rewrap import rewrap
from capdoctor.logs.scanner import Scanner
from capdoctor.logs.text import decode
from capdoctor.logs.values import ParsedLog

_BEFORE = 3  # lines of context in front of a hit
_AFTER = 64  # lines without meaning after which skipping begins again
_AFTER_IN_FLOOD = 8
_LIGHT_CAP = 100  # hits of one harmless pattern that are looked at in a run
_AHEAD = 2  # blocks that are being searched while another is read
_KINDS = 20_000  # kinds of error that are told apart in a flood
_SAMPLE = 200  # lines that tell how a log is wrapped; they are read whatever is in them
_TAIL = 4 << 10  # bytes kept from the end of an overlong line
_NOT_TEXT = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x1b\x08"))
_BINARY = 0.05
_DIGITS = rb"0x[0-9a-f]+|\d+"
_HEAD = b"Traceback (most"
_BOMS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class BlockReader:
    """Feed it the bytes of one log in order, then ask for the result."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._scanner = Scanner(limits)
        self._head: list[bytes] | None = []
        self._bytes = 0
        self._rest = b""
        self._long: bytes | None = None
        self._number = 1  # of the next line
        self._careful = 0
        self._hits_of: dict[int, int] = {}
        self._seen: set[int] = set()
        self._binary = False
        self._wrapped: int | None = None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._floods = 0
        self._overlong = 0
        self._run = 0
        self._muted: frozenset[int] = frozenset()
        self._searcher: Searcher | None = None
        self._waiting: list[tuple[bytes, int, Callable[[], list[tuple[int, int]]]]] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if not self._bytes:
            self._begin(data)
        self._bytes += len(data)
        if self._decoder is not None:
            data = self._decoder.decode(data).encode("utf-8", "replace")
        if self._head is None:
            self._lines_of(data)
            return
        self._head.append(data)
        if sum(map(len, self._head)) > self._limits.whole:
            whole, self._head = b"".join(self._head), None
            sample = whole[: 64 << 10].split(b"\n")[:_SAMPLE]
            self._scanner.look_ahead(sample)
            read = sum(len(line) + 1 for line in sample[:-1])  # the last may be cut
            self._read_lines(whole[:read])
            self._lines_of(whole[read:])

    def finish(
        self,
        source: str,
        member: str | None = None,
        compression: str | None = None,
        damage: str | None = None,
    ) -> ParsedLog:
        """End the log and give what was found."""
        if self._head is not None:
            self._whole(b"".join(self._head))
        else:
            self._end()
        total = self._number - 1
        runs = self._scanner.finish(total)
        return ParsedLog(
            source=source,
            member=member,
            runs=runs,
            total_lines=total,
            total_bytes=self._bytes,
            looked_at=self._scanner.looked_at,
            wrappers=self._scanner.layers,
            compression=compression,
            wrapped_at=self._wrapped,
            binary=self._binary,
            limits_hit=self._limits_hit(damage),
        )

    def _begin(self, data: bytes) -> None:
        encoding = next((name for bom, name in _BOMS if data.startswith(bom)), None)
        if encoding is not None:
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")
            return
        sample = data[: 64 << 10]
        strange = len(sample) - len(sample.translate(None, _NOT_TEXT))
        self._binary = bool(sample) and strange > _BINARY * len(sample)

    # -- a small log --------------------------------------------------------------------------

    def _whole(self, data: bytes) -> None:
        if not data:
            return
        lines = data.split(b"\n" if b"\n" in data else b"\r")  # an old Mac's, if not one line
        if lines[-1] == b"":
            lines.pop()
        self._number = len(lines) + 1
        lines = unboxed(restored(lines))
        self._scanner.look_ahead(lines[:_SAMPLE])
        numbered, self._wrapped = rewrap(lines)
        if self._wrapped is None:
            numbered = expanded(lines)
        if len(lines) > 2 * _BEFORE and not any(
            line.strip() for line in lines[1::2]
        ):  # a paste with every line end doubled
            numbered = numbered[::2]
        for number, line in numbered:
            self._feed(line, number)

    def _feed(self, line: bytes, number: int) -> bool:
        if len(line) > self._limits.line:
            self._overlong += 1
            line = line[: self._limits.line] + line[-_TAIL:]
        return self._scanner.line(decode(line), number)

    # -- a large log --------------------------------------------------------------------------

    def _lines_of(self, data: bytes) -> None:
        """Cut at the last newline; what follows it waits for the next block."""
        if self._rest:
            data = self._rest + data
        if self._long is not None:
            data = self._end_of_long(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            self._block(data, cut)
        self._rest = data[cut:]
        if len(self._rest) > self._limits.line:
            self._long = self._rest[: self._limits.line]
            self._rest = self._rest[-_TAIL:]

    def _end_of_long(self, data: bytes) -> bytes:
        """Skip the middle of an overlong line; give what is to be read on."""
        assert self._long is not None  # noqa: S101 - the caller has looked
        end = data.find(b"\n")
        if end < 0:
            return data[-_TAIL:]
        line, self._long = self._long + data[max(0, end - _TAIL) : end], None
        self._overlong += 1
        self._flush()
        self._scanner.line(decode(line), self._number)
        self._number += 1
        return data[end + 1 :]

    def _flush(self, *, at_end: bool = False) -> None:
        """Read the blocks whose search is under way."""
        waiting, self._waiting = self._waiting, []
        left = sum(size for _, size, _ in waiting)
        for data, size, search in waiting:
            left -= size
            tail = self._limits.tail - left if at_end and self._saturated else 0
            cut = data.rfind(b"\n", 0, max(0, size - tail)) + 1 if tail > 0 else size
            self._read_block(data, cut, search())
            self._read_lines(data[cut:size])

    def _end(self) -> None:
        if self._long is not None:
            self._end_of_long(self._rest + b"\n")
        elif self._rest:
            self._block(self._rest + b"\n", len(self._rest) + 1)
        self._flush(at_end=True)
        if self._searcher is not None:
            self._searcher.close()

    @property
    def _saturated(self) -> bool:
        return self._scanner.looked_at > self._limits.careful_lines

    @property
    def _after(self) -> int:
        return _AFTER_IN_FLOOD if self._saturated else _AFTER

    def _block(self, data: bytes, size: int) -> None:
        """Search the whole lines of a block, its first ``size`` bytes, while others are read."""
        if self._searcher is None:
            self._searcher = Searcher()
        self._muted = frozenset(n for n, c in self._hits_of.items() if c > _LIGHT_CAP)
        self._waiting.append((data, size, self._searcher.submit(data, self._muted)))
        if len(self._waiting) > _AHEAD:
            data, size, search = self._waiting.pop(0)
            self._read_block(data, size, search())

    def _read_block(self, data: bytes, size: int, hits: list[tuple[int, int]]) -> None:
        at, number, index = 0, self._number, 0
        looks = needle_looks()
        while at < size:
            if self._careful <= 0:
                index = self._next_hit(data, hits, index, at)
                if index == len(hits) or hits[index][0] >= size:
                    break
                hit, look = hits[index][0], looks[hits[index][1]]
                start = self._window(data, at, hit, look)
                if start > at:
                    number += data.count(b"\n", at, start)
                    self._scanner.gap()
                    at = start
                before = data.count(b"\n", at, hit)
                self._careful = before + 1 + (self._after if look else 0)
            end = data.index(b"\n", at)
            meant = self._feed(data[at:end], number)
            while index < len(hits) and hits[index][0] < end:
                meant = meant or looks[hits[index][1]] > Look.LINE
                index += 1
            at, number = end + 1, number + 1
            extend = meant and self._careful > 1 and not self._saturated
            self._careful = _AFTER if extend else self._careful - 1
        self._number = number + data.count(b"\n", at, size)

    def _next_hit(self, data: bytes, hits: list[tuple[int, int]], index: int, at: int) -> int:
        """Find the next hit that is worth a look; its index, or the number of hits."""
        looks, counts = needle_looks(), self._hits_of
        if self._scanner.run_number != self._run:
            self._run = self._scanner.run_number
            counts.clear()
            self._muted = frozenset()
        saturated = self._saturated
        for i in range(index, len(hits)):
            start, needle = hits[i]
            if start < at:
                continue
            look = looks[needle]
            if look is Look.LINE:
                count = counts[needle] = counts.get(needle, 0) + 1
                if count <= _LIGHT_CAP:
                    return i
            elif not saturated or (look is Look.ERROR and self._is_new(data, start)):
                return i
            else:
                self._floods += 1
        return len(hits)

    def _window(self, data: bytes, at: int, hit: int, look: Look) -> int:
        """Where to begin reading for a hit: at its line, or some lines before it."""
        start = data.rfind(b"\n", 0, hit) + 1
        if look is Look.LINE:
            return max(start, at)
        if self._saturated:
            head = data.rfind(_HEAD, max(at, hit - self._limits.line), hit)
            start = data.rfind(b"\n", 0, head) + 1 if head >= 0 else start
        for _ in range(_BEFORE):
            start = data.rfind(b"\n", 0, max(0, start - 1)) + 1
        return max(start, at)

    def _is_new(self, data: bytes, start: int) -> bool:
        """In a flood of errors only the first of each kind is read."""
        begin = data.rfind(b"\n", 0, start) + 1
        end = data.find(b"\n", start)
        line = data[max(begin, start - 80) : min(end if end >= 0 else len(data), start + 160)]
        kind = hash(re.sub(_DIGITS, b"0", line))
        if kind in self._seen or len(self._seen) >= _KINDS:
            return False
        self._seen.add(kind)
        return True

    def _read_lines(self, data: bytes) -> None:
        """Read line by line: the begin of a log, and the last words at the end of a flooded one."""
        for line in data.split(b"\n")[:-1]:
            self._feed(line, self._number)
            self._number += 1

    def _limits_hit(self, damage: str | None) -> tuple[str, ...]:
        notes = [damage] if damage else []
        if self._overlong:
            notes.append(f"{self._overlong} overlong lines were read in part")
        if self._floods:
            notes.append(f"{self._floods} further places with known errors were counted only")
        if self._scanner.dropped:
            notes.append(f"{self._scanner.dropped} further findings were counted only")
        if self._scanner.merged_runs:
            notes.append(f"{self._scanner.merged_runs} further runs were joined to the last one")
        return tuple(notes)
