"""Gathers the exceptions of one run: recognises later printings, counts repeats, bounds memory."""

from __future__ import annotations

from collections import deque

from capdoctor.logs.drafts import Key, NodeDraft, RecordDraft, unnamed
from capdoctor.logs.limits import Limits
from capdoctor.logs.values import UNNAMED, ExceptionNode, Link, LinkKind, Origin, StreamId

_KEYS_PER_NODE = 2  # kinds of error that are told apart, for each node that is kept
_NAMED = 64  # processes in which the first printing of raw text is looked for
_PRINTINGS = 3  # of one exception in one stream are kept, further ones are counted


class NodeCollector:
    """Hands out drafts and keeps the finished ones in file order."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = 0
        self._kept: list[NodeDraft] = []
        self._tail: deque[NodeDraft] = deque(maxlen=max(1, limits.nodes // 4))
        self._first: dict[tuple[Key, object], NodeDraft] = {}
        self._named: dict[Key, list[NodeDraft]] = {}
        self._printings: dict[int, int] = {}
        self.dropped = 0
        self.count = 0
        self.raw_front_end = False

    def begin(
        self, origin: Origin, stream: StreamId, line: int, record: RecordDraft | None
    ) -> NodeDraft:
        """Open a draft; its index is provisional."""
        self._next += 1
        return NodeDraft(self._next, origin, stream, line, line, record)

    def finish(self, draft: NodeDraft) -> None:
        """Keep a finished draft, or count it if it says nothing new."""
        loud = draft.record is None or draft.record.level not in ("WARNING", "INFO", "DEBUG")
        self.count += loud
        if draft.record is None and draft.stream.role in ("frontend", "unknown"):
            self.raw_front_end = self.raw_front_end or draft.process_name is None
        first = self._first_printing(draft) if draft.type is not None else None
        if first is None:
            self._remember(draft)
        elif draft.line < first.line:  # a record ends with the next one, raw text before it
            _mark_copy(first, draft)
            self._remember(draft)
        else:
            _mark_copy(draft, first)
            printings = self._printings[first.index] = self._printings.get(first.index, 1) + 1
            if printings > _PRINTINGS:
                first.repeats += 1
                return
        self._keep(draft)

    def _first_printing(self, draft: NodeDraft) -> NodeDraft | None:
        key = draft.key
        first = self._first.get((key, _process(draft.stream)))
        if first is None and unnamed(draft.stream):
            first = next((old for old in self._named.get(key, ()) if _same(draft, old)), None)
        elif first is None:
            first = self._first.get((key, _process(UNNAMED)))
            first = first if first is not None and _same(first, draft) else None
        return first

    def _remember(self, draft: NodeDraft) -> None:
        if len(self._first) > _KEYS_PER_NODE * self._limits.nodes:
            return
        key = draft.key
        self._first[key, _process(draft.stream)] = draft
        named = self._named.setdefault(key, [])
        if not unnamed(draft.stream) and len(named) < _NAMED:
            named.append(draft)

    def _keep(self, draft: NodeDraft) -> None:
        if len(self._kept) < self._limits.nodes:
            self._kept.append(draft)
        else:
            self.dropped += len(self._tail) == self._tail.maxlen
            self._tail.append(draft)

    def freeze(self) -> tuple[ExceptionNode, ...]:
        """Give all kept exceptions in file order, renumbered from 0."""
        drafts = sorted([*self._kept, *self._tail], key=lambda d: (d.line, d.index))
        renumber = {draft.index: position for position, draft in enumerate(drafts)}
        return tuple(draft.freeze(position, renumber) for position, draft in enumerate(drafts))


def _process(stream: StreamId) -> tuple[int | StreamId | None, str | None]:
    """What `StreamId.same_process` compares."""
    return (stream.pid if stream.pid is not None else stream), stream.ip


def _same(raw: NodeDraft, named: NodeDraft) -> bool:
    """Raw text of vLLM 0.31 and on does not say whose it is: `Process X:` may."""
    return raw.process_name in (None, named.stream.name)


def _mark_copy(draft: NodeDraft, first: NodeDraft) -> None:
    draft.links = [link for link in draft.links if link.kind is not LinkKind.EMBEDDED]
    draft.links.append(Link(LinkKind.COPY, first.index))
    if draft.origin is Origin.SUBPROCESS:
        draft.origin = Origin.TRACEBACK
