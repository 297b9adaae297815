"""What the tracer saw of stream captures in the processes of one run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from capdoctor.model.diagnosis import ErrorInfo, Frame


class OffenceKind(StrEnum):
    """How an operation broke a capture, as far as the tracer could tell.

    INVALIDATED: the capture was active before the operation and invalidated after it.
    RAISED: torch's own check refused the operation; the driver's capture stayed active.
    UNJOINED: work of the named fork was not joined when the capture ended.
    EVENT_OUTSIDE: an event recorded inside a capture was used where nothing captured any more;
        ``call`` is that use, ``earlier`` the record.
    OTHER_THREAD: a call of another thread invalidated the capture.
    UNSEEN: native code that no hook sees did it, after ``earlier`` and before ``call``.
    AT_END: only the end of the capture failed, and nothing before it explains why.
    """

    INVALIDATED = "invalidated"
    RAISED = "raised"
    UNJOINED = "unjoined"
    EVENT_OUTSIDE = "event_outside"
    OTHER_THREAD = "other_thread"
    UNSEEN = "unseen"
    AT_END = "at_end"


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call that the tracer saw.

    ``operation`` is the operator (``aten::_local_scalar_dense``), the Python callable
    (``torch.cuda.Event.synchronize``) or the driver's function (``cuMemHostAlloc``); where none of
    these was seen, the text of the line, or ``native code``. ``called_as`` is the Python callable
    around an operator, where there is one. ``stack`` is outermost first,
    without torch's frames; its last frame is the line to change. ``source`` is that line's text.
    ``capture`` is the driver's id of the capture, ``number`` counts the captures of the process
    from 1. ``thread`` is the thread's name and ``thread_id`` its pthread id.
    """

    operation: str
    stack: tuple[Frame, ...] = ()
    source: str = ""
    called_as: str | None = None
    stream: int | None = None
    capture: int | None = None
    number: int | None = None
    thread: str | None = None
    thread_id: int | None = None

    @property
    def place(self) -> Frame | None:
        """The innermost frame: the line that made the call."""
        return self.stack[-1] if self.stack else None


@dataclass(frozen=True, slots=True)
class Offence:
    """The first operation that broke one capture.

    ``error`` is what the operation raised, None if it raised nothing; ``end_error`` is what the end
    of the capture raised. ``driver`` holds the driver's own lines about it, as logged.
    """

    kind: OffenceKind
    call: TracedCall
    earlier: TracedCall | None = None
    error: ErrorInfo | None = None
    end_error: ErrorInfo | None = None
    driver: tuple[str, ...] = ()
    pid: int | None = None
    process: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CaptureTrace:
    """What the tracer wrote in all processes of one run.

    ``offences`` are in the order of time; the first is the root. ``processes`` counts those where
    the tracer was installed, ``captures`` the captures that ended, well or badly. ``faults`` are
    the tracer's own: after one it stepped aside in that process.
    """

    offences: tuple[Offence, ...]
    processes: int = 0
    captures: int = 0
    faults: tuple[str, ...] = ()

    @property
    def first(self) -> Offence | None:
        """The first operation that broke a capture, None if none did."""
        return self.offences[0] if self.offences else None
