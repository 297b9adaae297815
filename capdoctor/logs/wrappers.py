"""What collectors put around a line: CRI, Docker JSON, journald, compose, kubectl, time stamps.

Layers are peeled until none is left. A label that could as well be text (``vllm | ``, ``0: ``,
``> ``) is peeled only where what follows is known to be a log, or the line before had it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DATE = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d| UTC)?"
_CRI = re.compile(_DATE + r" (?:stdout|stderr) (?P<part>[FP])(?::[^ ]*)?(?: |$)")
_MONTH = r"(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
# Without a pid "host name: text" looks like text: believed behind the old time stamp alone.
_SYSLOG = re.compile(
    r"(?:(?:" + _MONTH + "|" + _DATE + r") (?:[^\s:\[\]]+ )?(?:[\w./@-]+\[\d+\]|kernel)"
    r"|" + _MONTH + r" [^\s:\[\]]+ [\w./@-]+): ?"
)
_ISO = re.compile(_DATE + r"[ \t]")
_ISO_BRACKETS = re.compile(r"\[" + _DATE + r"\][ \t](?=[(\[{]|DEBUG|INFO|WARN|ERROR|CRIT|Trace| )")
_KUBECTL = re.compile(r"\[(?P<pod>(?:pod/)?[\w.-]+/[\w./-]+)\] ")
_COMPOSE = re.compile(r"(?P<box>[A-Za-z0-9][\w.-]*[-_]\d+) +\| ?")
_KERNEL = re.compile(r"\[ *\d+\.\d{6}\] ")
_LABEL = re.compile(r"(?P<label>[A-Za-z0-9][\w.-]{1,40} +\||\s{0,3}\d{1,4}:|>)(?: |$)")
_KNOWN = re.compile(
    r"\(|\[rank|\[\d{4}-|\{|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :]|Traceback \(| {2}File \""
)
_FIRST = frozenset("0123456789[<>ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")
_DEEPEST = 8  # layers; more is no log but an attack


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A line without its wrappers. ``partial``: CRI says that the next line continues it."""

    text: str
    partial: bool = False
    container: str | None = None
    layers: tuple[str, ...] = ()


class Unwrapper:
    """Peels line after line; it remembers the label of the line before."""

    def __init__(self) -> None:
        self._label = ""

    def unwrap(self, text: str) -> Unwrapped:
        """Peel every layer off one clean line."""
        if not text or text[0] not in _FIRST:
            return Unwrapped(text)
        layers: list[str] = []
        partial, container = False, None
        for _ in range(_DEEPEST):
            layer, match = _layer(text)
            if match is None:
                break
            layers.append(layer)
            groups = match.groupdict()
            partial = partial or groups.get("part") == "P"
            container = groups.get("pod") or groups.get("box") or container
            text = text[match.end() :]
        text, label = self._peel_label(text)
        return Unwrapped(text, partial, container or label, tuple(layers))

    def _peel_label(self, text: str) -> tuple[str, str | None]:
        match = _LABEL.match(text)
        if match is None:
            if text.strip():
                self._label = ""
            return text, None
        rest, label = text[match.end() :], match["label"]
        again = label == self._label
        if not again and not _KNOWN.match(rest):
            return text, None
        self._label = label
        return rest, None if label == ">" else label.rstrip(" |:").strip()


def _layer(text: str) -> tuple[str, re.Match[str] | None]:
    first = text[:1]
    if first.isdigit():
        return _first_of(text, ("cri", _CRI), ("journald", _SYSLOG), ("iso", _ISO))
    if first == "[":
        return _first_of(text, ("kubectl", _KUBECTL), ("iso", _ISO_BRACKETS), ("kernel", _KERNEL))
    if first == "<" or (first.isupper() and text[3:4] == " "):
        layer, match = _first_of(text, ("journald", _SYSLOG))
        if match:
            return layer, match
    if first.isalnum() and ("| " in text[:80] or text[:80].endswith("|")):
        return _first_of(text, ("compose", _COMPOSE))
    return "", None


def _first_of(text: str, *layers: tuple[str, re.Pattern[str]]) -> tuple[str, re.Match[str] | None]:
    for name, pattern in layers:
        match = pattern.match(text)
        if match:
            return name, match
    return "", None
