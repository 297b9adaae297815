"""Where to look in a large log: the byte patterns, and what a hit of each asks for."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache, lru_cache

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from capdoctor.logs.markers import markers
from capdoctor.logs.signs import needles


class Look(IntEnum):
    """What to read around a hit."""

    LINE = 0  # the line itself
    AROUND = 1  # the lines around it, until nothing more happens
    ERROR = 2  # the same, and the line may be the last one of a traceback


_ERROR = (b"Error", b"Exception", b"Interrupt", b"Failure:", b"Exit:")
_AROUND = (
    b"Traceback (most", b'File "', b'File \\"', b"ERROR", b"CRITICAL", b"During handling of",
    b"direct cause of", b"terminate called", b"terminating due to", b"Fatal Python",
    b"!!!!!!! Segfault", b"INTERNAL ASSERT", b"watchdog thread", b"NCCL WARN", b"what():",
)  # fmt: skip
_LINE = (
    b"Capturing ", b"LLM engine (v", b"  version ", b"vLLM Version", b"PyTorch version",
    b"river version", b"Driver Version", b"nccl==", b"[pip3]", b"frame #",
    b"CUDA error", b"HIP error", b"Cuda failure", b"CUDBG_EXCEPTION", b"NCCL error",
    b"NCCL failure",
)  # fmt: skip


# Two bytes would make the search slow; as a word of its own it stands at the start of a line.
_SHORT = {"^C": "\n^C"}
_GROUP = 64  # patterns; the SIMD search of the library takes no more, and likes like beginnings
_WORKERS = 2  # the search lets go of the interpreter lock, so two cores help


_Group = tuple[tuple[int, ...], BytesAhoCorasick]


class Searcher:
    """Searches blocks for all needles, ahead of the reader and in threads of its own."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(_WORKERS)

    def submit(self, data: bytes, muted: frozenset[int]) -> Callable[[], list[tuple[int, int]]]:
        """Begin to search a block; the result gives (last byte, needle) in the order of the text.

        ``muted`` needles were seen often enough.
        """
        groups = _automata(muted)
        half = (len(groups) + 1) // 2
        jobs = [self._pool.submit(_find, data, part) for part in (groups[:half], groups[half:])]
        return lambda: _merged([job.result() for job in jobs])

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@cache
def needle_looks() -> tuple[Look, ...]:
    """Give what a hit of each needle asks for."""
    return tuple(_looks().values())


def _find(
    data: bytes, groups: tuple[_Group, ...]
) -> list[tuple[tuple[int, ...], list[tuple[int, int, int]]]]:
    return [(ids, automaton.find_matches_as_indexes(data)) for ids, automaton in groups]


def _merged(
    parts: list[list[tuple[tuple[int, ...], list[tuple[int, int, int]]]]],
) -> list[tuple[int, int]]:
    return sorted(
        (end - 1, ids[pattern]) for part in parts for ids, hits in part for pattern, _, end in hits
    )


@lru_cache(maxsize=8)
def _automata(muted: frozenset[int]) -> tuple[_Group, ...]:
    texts = sorted((text, i) for i, text in enumerate(_looks()) if i not in muted)
    return tuple(_group(texts[at : at + _GROUP]) for at in range(0, len(texts), _GROUP))


def _group(texts: list[tuple[bytes, int]]) -> _Group:
    automaton = BytesAhoCorasick(
        [text for text, _ in texts],
        matchkind=MatchKind.LeftmostFirst,
        implementation=Implementation.ContiguousNFA,
    )
    return tuple(number for _, number in texts), automaton


@cache
def _looks() -> dict[bytes, Look]:
    """Marks that count only where the begin is lost are looked for at the begin: they are many."""
    looks: dict[bytes, Look] = {}
    for texts, look in ((_ERROR, Look.ERROR), (_AROUND, Look.AROUND), (_LINE, Look.LINE)):
        looks |= dict.fromkeys(texts, look)
    for marker in markers():
        for text in () if marker.late else marker.texts:
            looks.setdefault(text.encode(), Look.LINE)
    for needle in needles():
        looks.setdefault(_SHORT.get(needle, needle).encode(), Look.LINE)
    covered = {text for text in looks if any(other in text for other in looks if other != text)}
    return {text: look for text, look in looks.items() if text not in covered}
