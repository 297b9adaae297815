"""How the exceptions of one stream hang together while they are read."""

from __future__ import annotations

from collections.abc import Callable

from capdoctor.logs.drafts import NodeDraft, RecordDraft
from capdoctor.logs.peel import Peeled
from capdoctor.logs.values import LinkKind, Origin, StreamId

Begin = Callable[[Origin, StreamId, int, RecordDraft | None], NodeDraft]
Finish = Callable[[NodeDraft], None]


class Chain:
    """The exception that is open, the one before it, and what joins the next one to them."""

    def __init__(self, stream: StreamId, begin: Begin, finish: Finish) -> None:
        self._stream, self._begin, self._finish = stream, begin, finish
        self.node: NodeDraft | None = None
        self.last: NodeDraft | None = None
        self.join: LinkKind | None = None
        self.before = ""
        self._outer: NodeDraft | None = None
        self._groups: list[NodeDraft] = []

    def start(self, origin: Origin, line: Peeled, record: RecordDraft | None) -> NodeDraft:
        """Open an exception and join it to the one before, if a sentence said so."""
        node = self._begin(origin, self._stream, line.number, record)
        if record is not None and origin is not Origin.BARE:
            record.has_traceback = True
        if record is None or record.style == "sglang":
            node.preface = self.before
        if self.join is not None and self.last is not None:
            node.link(self.join, self.last.index)
        elif self._groups:
            node.link(LinkKind.MEMBER, self._groups[-1].index)
        else:
            self._outer = None
        self.join, self.node, self.before = None, node, ""
        return node

    def quote(
        self, node: NodeDraft, line: Peeled, record: RecordDraft | None, inside: bool
    ) -> None:
        """Open a traceback behind a message: a note that repeats it, or another process's text."""
        self.done()
        outer = self._outer or node
        fresh = self.start(Origin.TRACEBACK, line, record)
        if inside:
            fresh.origin = Origin.SUBPROCESS
            fresh.link(LinkKind.EMBEDDED, outer.index)
            self._outer = outer

    def done(self) -> None:
        """Hand the open exception over."""
        node, self.node = self.node, None
        if node is None:
            return
        self._finish(node)
        self.last = node
        # A note has told the whole chain again: what comes next is told by the outer one.
        if self._outer is not None and node.key == self._outer.key:
            self.last, self._outer = self._outer, None

    def reset(self) -> None:
        """Nothing after this belongs to anything before it."""
        self.last = self._outer = None
        self.join = None
        self.before = ""
        self._groups.clear()

    def rule(self, kind: str | None) -> None:
        """Take the rule between the members of an exception group."""
        self.done()
        if kind == "child" and self.last is not None:
            self._groups.append(self.last)
        elif kind == "end" and self._groups:
            self._groups.pop()
        self.last = None
