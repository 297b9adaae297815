"""Who wrote a line, the line, and the record it belongs to, as frozen values.

Line numbers are 1-based lines of the file (or archive member) as it was given. Texts are free of
colour codes and of the prefixes that wrappers and engines put in front; they are a stranger's
words: never to be interpreted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Role = Literal["worker", "engine", "frontend", "unknown"]
Engine = Literal["vllm", "sglang"]
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

_ROLES: tuple[tuple[str, Role], ...] = (
    (r"(?i)(vllm)?worker|RayWorker|SpawnProcess|(DP|PP|TP|EP|ATTN|MOE)", "worker"),
    (r"(?i)engine_?core|scheduler", "engine"),
    (r"(?i)api_?server|MainProcess|detokenizer|tokenizer", "frontend"),
)


@dataclass(frozen=True, slots=True)
class StreamId:
    """The process that wrote a line, as the log names it; all None where it names none.

    ``name`` is the innermost name of a nested prefix (``Worker_TP1``, ``RayWorkerWrapper``), or
    the tag of an SGLang line (``DP0 TP1``). ``rank`` is the tensor-parallel or global rank.
    ``ip`` is the node of a Ray worker, the container of a compose file or the pod.
    """

    name: str | None = None
    pid: int | None = None
    rank: int | None = None
    ip: str | None = None

    @property
    def named(self) -> bool:
        """Whether the log says anything about who wrote the line."""
        return (self.name, self.pid, self.rank) != (None, None, None)

    @property
    def role(self) -> Role:
        """What kind of process the name stands for."""
        for pattern, role in _ROLES:
            if self.name and re.match(pattern, self.name):
                return role
        return "worker" if self.name is None and self.rank is not None else "unknown"

    def same_process(self, other: StreamId) -> bool:
        """Whether both are one process: a process may rename itself, so the pid decides."""
        if self.pid is not None and other.pid is not None:
            return (self.pid, self.ip) == (other.pid, other.ip)
        return self == other


UNNAMED = StreamId()


@dataclass(frozen=True, slots=True)
class Line:
    """One line that was looked at.

    ``text`` is what is left when wrapper, prefix and record header are taken off; ``shown`` is
    the line as a reader saw it, without colours and without overwritten progress.
    """

    number: int
    text: str
    shown: str
    stream: StreamId = UNNAMED
    level: Level | None = None
    time: str | None = None
    file: str | None = None
    lineno: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A log record: a header and every line that repeats it. ``message`` is joined by newlines."""

    stream: StreamId
    level: Level | None
    time: str | None
    file: str | None
    lineno: int | None
    message: str
    line: int
    last_line: int
