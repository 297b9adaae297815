"""What collectors put around a line: CRI, Docker JSON, journald, compose, kubectl, time stamps.

Layers are peeled until none is left. A label that could as well be text (``vllm | ``, ``0: ``,
``> ``) is peeled only where what follows is known to be a log, or the line before had it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from capdoctor.logs.shapes import learn_front

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
_MPIRUN = re.compile(r"\[\d+,\d+\]<std(?:out|err)>: ?")
_KERNEL = re.compile(r"\[ *\d+\.\d{6}\] ")
_LABEL = re.compile(r"(?P<label>[A-Za-z0-9][\w.-]{1,40} +\||\s{0,3}\d{1,4}:|>)(?: |$)")
_KNOWN = re.compile(
    r"\(|\[rank|\[\d{4}-|\{|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :]|Traceback \(| {2}File \""
)
_FIRST = frozenset("0123456789[<>ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz ")
_FEWEST, _NEARLY_ALL = 3, 0.9
_DEEPEST = 8  # layers; more is no log but an attack


class Unwrapped(NamedTuple):
    """A line without its wrappers. ``partial``: CRI says that the next line continues it."""

    text: str
    partial: bool = False
    container: str | None = None
    layers: tuple[str, ...] = ()


class Unwrapper:
    """Peels line after line; it remembers the labels of the line before."""

    def __init__(self) -> None:
        self._labels: list[str] = []
        self._sure = False
        self._front: re.Pattern[str] | None = None

    def look_ahead(self, lines: Iterable[str]) -> None:
        """Learn what nearly all of these lines begin with: a label, or an unknown mark."""
        filled = [line for line in lines if line.strip()]
        labelled = sum(_LABEL.match(line) is not None for line in filled)
        self._sure = len(filled) >= _FEWEST and labelled >= _NEARLY_ALL * len(filled)
        inner = [self.unwrap(line).text for line in filled]
        self._front = learn_front(inner) or learn_front(filled)
        self._labels = []

    def unwrap(self, text: str) -> Unwrapped:
        """Peel every layer off one clean line."""
        if not text or (text[0] not in _FIRST and self._front is None):
            return Unwrapped(text)
        layers: list[str] = []
        labels: list[str] = []
        partial, container, front = False, None, self._front
        for _ in range(_DEEPEST):
            layer, match = _layer(text)
            if match is not None:
                layers.append(layer)
            elif (match := self._label(text, len(labels))) is not None:
                labels.append(match["label"])
            elif front is not None and (match := front.match(text)) is not None:
                layers.append("front")
                front = None
            else:
                break
            groups = match.groupdict()
            partial = partial or groups.get("part") == "P"
            container = groups.get("pod") or groups.get("box") or _name(match) or container
            text = text[match.end() :]
        if text.strip() or labels:
            self._labels = labels
        return Unwrapped(text, partial, container, tuple(layers))

    def _label(self, text: str, depth: int) -> re.Match[str] | None:
        match = _LABEL.match(text)
        if match is None or (self._sure and depth == 0):
            return match
        again = self._labels[depth : depth + 1] == [match["label"]]
        return match if again or _KNOWN.match(text, match.end()) else None


def _name(match: re.Match[str]) -> str | None:
    label = match.groupdict().get("label") or ">"
    return None if label == ">" else label.rstrip(" |:").strip()


def _layer(text: str) -> tuple[str, re.Match[str] | None]:
    first = text[:1]
    if first.isdigit():
        return _first_of(text, ("cri", _CRI), ("journald", _SYSLOG), ("iso", _ISO))
    if first == "[":
        return _first_of(
            text,
            ("kubectl", _KUBECTL),
            ("iso", _ISO_BRACKETS),
            ("kernel", _KERNEL),
            ("mpirun", _MPIRUN),
        )
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
