"""What the tracer wrote in the processes of a run, with its files named as a log's are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from capdoctor.logs import package_path
from capdoctor.model import CaptureTrace, Frame, Offence, TracedCall


def read_run_trace(folder: Path, driver_log: Path | None) -> CaptureTrace | None:
    """Read the traces in ``folder``; None if the tracer ran in no process.

    ``driver_log`` is what the driver wrote in the same run. Files are named from the package on.
    """
    from capdoctor.capture.tracer import read_trace

    trace = read_trace(folder, driver_log)
    if trace is None:
        return None
    return replace(trace, offences=tuple(map(_shortened, trace.offences)))


def _shortened(offence: Offence) -> Offence:
    earlier = _call(offence.earlier) if offence.earlier is not None else None
    return replace(offence, call=_call(offence.call), earlier=earlier)


def _call(call: TracedCall) -> TracedCall:
    return replace(call, stack=tuple(map(_frame, call.stack)))


def _frame(frame: Frame) -> Frame:
    return replace(frame, file=package_path(frame.file))
