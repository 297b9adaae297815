"""Which of the offences that the tracer saw is behind the crash that the log tells of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from capdoctor.diagnosis.case import Case
from capdoctor.diagnosis.driver_errors import decode
from capdoctor.diagnosis.explain import fits_row
from capdoctor.diagnosis.fingerprint import normalised_message
from capdoctor.diagnosis.incident import Incident
from capdoctor.diagnosis.tables import table
from capdoctor.model import CaptureTrace, ErrorInfo, Frame, Offence

_CAPTURE_CODES = frozenset(range(900, 909))


class Tie(IntEnum):
    """How an offence hangs together with the log, the strongest first.

    SAME: the log's root error is what the operation raised. END: the log only has what the end of
    the capture raised. LATER: the log's root error is of a kind that follows from a lost capture.
    ALONE: the log has no error that could be a cause.
    """

    SAME = 0
    END = 1
    LATER = 2
    ALONE = 3


@dataclass(frozen=True, slots=True)
class TiedOffence:
    """The offence behind a crash; ``incident`` is the one of the log by which it is tied to it."""

    offence: Offence
    tie: Tie
    incident: Incident | None = None


def offence_behind(case: Case, trace: CaptureTrace) -> TiedOffence | None:
    """Give the first offence with the strongest tie, None if none explains this log.

    Of several ranks that broke in the same way the one counts whose error the log's root is. Where
    the log has no error at all, the last offence is nearest to the end.
    """
    tied = [found for found in (_tie(case, one) for one in trace.offences) if found is not None]
    if tied and all(found.tie is Tie.ALONE for found in tied):
        return tied[-1]
    return min(tied, key=lambda found: (found.tie, _is_elsewhere(found))) if tied else None


def _is_elsewhere(found: TiedOffence) -> bool:
    return found.incident is not None and not _may_be_of(found.incident, found.offence)


def _tie(case: Case, offence: Offence) -> TiedOffence | None:
    same = _raised_by(offence, _root_chain(case))
    if same is not None:
        return TiedOffence(offence, Tie.SAME, same)
    root = case.root.incident if case.root is not None else None
    if offence.end_error is not None and (root is None or _follows(root)):
        own = (one for one in case.incidents if _may_be_of(one, offence))
        last = _first_same(own, offence.end_error)
        if last is not None:
            return TiedOffence(offence, Tie.END, last)
    if root is None:
        return TiedOffence(offence, Tie.ALONE, _first_follower(case))
    if _follows(root) and _may_be_of(root, offence):
        return TiedOffence(offence, Tie.LATER, root)
    return None


def _raised_by(offence: Offence, incidents: Iterable[Incident]) -> Incident | None:
    """Give the error of the log that the operation raised.

    Where the tracer saw a call fail and not with what (a C function under a profile hook), it is
    the error whose traceback ends at the very line of the call.
    """
    if offence.error is not None:
        return _first_same(incidents, offence.error)
    own = (one for one in incidents if one.kind == "python" and _may_be_of(one, offence))
    return next((one for one in own if _ends_at(one, offence.call.place)), None)


def _ends_at(one: Incident, place: Frame | None) -> bool:
    """Whether a traceback ends at a line, torch's own frames below it left out."""
    own = (frame for frame in reversed(one.frames) if not frame.path.startswith("torch/"))
    last = next(own, None)
    if place is None or last is None:
        return False
    return (last.path, last.line, last.function) == (place.file, place.line, place.function)


def _root_chain(case: Case) -> Iterable[Incident]:
    return (case.root.incident, *case.root.chain) if case.root is not None else ()


def _first_same(incidents: Iterable[Incident], error: ErrorInfo) -> Incident | None:
    return next((one for one in incidents if _is_same(one, error)), None)


def _is_same(one: Incident, error: ErrorInfo) -> bool:
    """Whether an error of the log is the one that the tracer saw raised."""
    if one.kind == "death":
        return False
    code = error.code
    if code is None:
        driver = decode(error.message)
        code = driver.code if driver is not None else None
    mine = one.driver.code if one.driver is not None else None
    if code is not None or mine is not None:
        return code == mine
    if error.type and one.type and error.type.rsplit(".", 1)[-1] != one.short_type:
        return False
    return normalised_message(one.message) == normalised_message(error.message)


def _follows(root: Incident) -> bool:
    """Whether an error is one that a capture leaves behind which was lost before."""
    if root.driver is not None and root.driver.code in _CAPTURE_CODES:
        return True
    rows = (row for row in table("follow_ons")["rows"] if row["cause"] == "capture")
    return any(fits_row(root, row) for row in rows)


def _may_be_of(one: Incident, offence: Offence) -> bool:
    """Whether nothing says that another process raised it."""
    return one.stream.pid is None or offence.pid is None or one.stream.pid == offence.pid


def _first_follower(case: Case) -> Incident | None:
    return next((one for one in case.incidents if one.kind != "death"), None)
