"""Progress bars of graph capture, also the states that carriage returns overwrote."""

from __future__ import annotations

import re
from typing import NamedTuple

# tqdm: "<label> (<mode>):  27%|##7       | 3/11 [00:00<00:00, 12.3it/s]"; with timestamps the
# label has a date in front, and SGLang puts the batch size in the brackets.
_BAR = (
    r"(?P<label>Capturing [^\r\n(:|]{2,60}?)(?: \((?P<mode>[^()\r\n]{1,80})\))?"
    r"\s*:\s+\d{1,3}%\|[^|\r\n]*\|\s*(?P<done>\d{1,6})/(?P<total>\d{1,6})\b"
)
_SIZE = r"\b(?:bs|num_tokens|batch_size)=(\d{1,7})"


class BarState(NamedTuple):
    """One state of a bar, without its place in the log."""

    label: str
    mode: str
    done: int
    total: int
    size: int | None


def bar_states(raw: str) -> tuple[BarState, ...]:
    """Give every state of a capture bar in a raw line, overwritten ones included."""
    if "Capturing " not in raw:
        return ()
    return tuple(_state(match) for match in re.finditer(_BAR, raw))


def _state(match: re.Match[str]) -> BarState:
    size = re.search(_SIZE, match["mode"] or "")
    return BarState(
        label=match["label"].strip(),
        mode=match["mode"] or "",
        done=int(match["done"]),
        total=int(match["total"]),
        size=int(size[1]) if size else None,
    )
