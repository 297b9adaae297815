"""What the tracer saw, in words: which operation broke the capture, where, on which stream."""

from __future__ import annotations

from dataclasses import dataclass

from capdoctor.model import CaptureTrace, Frame, Offence, OffenceKind, TracedCall
from capdoctor.report.safe_text import one_line


@dataclass(frozen=True, slots=True)
class CallRole:
    """What a call of an offence was: a label of a word or two, and a clause."""

    label: str
    clause: str


_FAULTS_SHOWN = 3
_CALL: dict[OffenceKind, CallRole] = {
    OffenceKind.INVALIDATED: CallRole("broken by", "the operation that broke the capture"),
    OffenceKind.RAISED: CallRole("broken by", "the operation that was refused in the capture"),
    OffenceKind.UNJOINED: CallRole("not joined", "the fork that was not joined when it ended"),
    OffenceKind.EVENT_OUTSIDE: CallRole("used at", "the event is used where nothing captures"),
    OffenceKind.OTHER_THREAD: CallRole("broken by", "a call of another thread broke the capture"),
    OffenceKind.UNSEEN: CallRole("lost before", "the first operation after the capture was lost"),
    OffenceKind.AT_END: CallRole("ended at", "only the end of the capture failed"),
}
_EARLIER: dict[OffenceKind, CallRole] = {
    OffenceKind.EVENT_OUTSIDE: CallRole("recorded at", "the event is recorded inside a capture"),
    OffenceKind.UNSEEN: CallRole("lost after", "the last operation before the capture was lost"),
    OffenceKind.UNJOINED: CallRole("forked from", "what the fork waited for"),
    OffenceKind.OTHER_THREAD: CallRole("meanwhile", "what the capturing thread did"),
}
_BEFORE = CallRole("before it", "seen before it in the same capture")


def calls_of(offence: Offence) -> tuple[tuple[CallRole, TracedCall], ...]:
    """Give the calls of an offence with what each was, the one to change first."""
    found = [(_CALL[offence.kind], offence.call)]
    if offence.earlier is not None:
        found.append((_EARLIER.get(offence.kind, _BEFORE), offence.earlier))
    return tuple(found)


def call_text(call: TracedCall) -> str:
    """Give ``operation (called as …) at file:line in function: source``, as far as it is known."""
    text = one_line(call.operation, 160)
    if call.called_as and call.called_as != call.operation:
        text += f" (called as {one_line(call.called_as, 120)})"
    if call.place is not None:
        text += f" at {_place(call.place)}"
    return f"{text}: {one_line(call.source, 160)}" if call.source else text


def circumstances(call: TracedCall) -> str:
    """Give the capture, the stream and the thread of a call, as far as they are known."""
    parts = []
    if call.number is not None or call.capture is not None:
        parts.append(" ".join(["capture", *_numbered(call)]))
    if call.stream is not None:
        parts.append(f"stream {call.stream:#x}")
    if call.thread or call.thread_id is not None:
        number = "" if call.thread_id is None else str(call.thread_id)
        parts.append(" ".join(["thread", *filter(None, (one_line(call.thread or "", 60), number))]))
    return ", ".join(parts)


def _numbered(call: TracedCall) -> list[str]:
    number = [f"#{call.number}"] if call.number is not None else []
    return [*number, *([f"(id {call.capture})"] if call.capture is not None else [])]


def _place(frame: Frame) -> str:
    place = one_line(frame.file) + (f":{frame.line}" if frame.line is not None else "")
    return f"{place} in {one_line(frame.function)}" if frame.function else place


def fault_notes(trace: CaptureTrace) -> tuple[str, ...]:
    """Give a sentence on each of the tracer's own faults, the first few of them.

    A fault is a traceback; its last line says what went wrong.
    """
    shown = trace.faults[:_FAULTS_SHOWN]
    told = [f"the capture tracer stepped aside: {_last_line(fault)}" for fault in shown]
    more = len(trace.faults) - len(shown)
    return (*told, *([f"and {_count(more, 'more fault')} of the tracer"] if more else []))


def _last_line(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    return one_line(lines[-1], 300) if lines else "it does not say why"


def trace_summary(trace: CaptureTrace) -> str:
    """Give in one clause where the tracer was and whether a capture was broken there."""
    where = _count(trace.processes, "process", "es")
    if not trace.offences:
        return f"{where}, no capture was broken"
    broken = len(trace.offences)
    return f"{where}, {_count(broken, 'capture')} {'was' if broken == 1 else 'were'} broken"


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"
