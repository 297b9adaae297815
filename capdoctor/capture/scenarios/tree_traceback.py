"""The traceback of a scenario that crashed, as the engine of the tree would have printed it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

from capdoctor.capture.stacks import is_ours

_DRIVERS = tuple(
    str(Path(__file__).resolve().parents[1] / part) for part in ("scenarios", "segments.py")
)
# Between an operator and a torch that is watched; a device's own stack has none of it.
_PLUMBING = ("torch/_compile.py", "torch/_ops.py")


def crash_lines(error: BaseException, source: Path) -> Iterator[str]:
    """Give the traceback as the tree's engine would print it.

    After the tree's innermost frame come the virtual device and our stand-ins, where an engine
    has the device itself: they are left out.
    """
    told = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = told
    while link is not None:
        link.stack = traceback.StackSummary.from_list(_told(list(link.stack), source))
        link = link.__cause__ or link.__context__
    yield from told.format()


def _told(frames: list[traceback.FrameSummary], source: Path) -> list[traceback.FrameSummary]:
    inside = [n for n, frame in enumerate(frames) if frame.filename.startswith(str(source))]
    if not inside:
        return [frame for frame in frames if _is_driver(frame.filename) or _is_real(frame.filename)]
    rest = [frame for frame in frames[inside[-1] + 1 :] if _is_real(frame.filename)]
    return frames[: inside[-1] + 1] + rest


def _is_driver(filename: str) -> bool:
    """Say whether the frame is of the code that drives the capture, as an engine's would be."""
    return filename.startswith(_DRIVERS)


def root_of(error: BaseException) -> BaseException:
    """Give the error that began it: ``capture_end`` raises another one on its way out."""
    seen: set[int] = set()
    while error.__context__ is not None and id(error) not in seen:
        seen.add(id(error))
        error = error.__context__
    return error


def _is_real(filename: str) -> bool:
    return not is_ours(filename) and not filename.endswith(_PLUMBING)
