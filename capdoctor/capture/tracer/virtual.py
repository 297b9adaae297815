"""The tracer on the virtual device: the same hooks, and the device's own word on a capture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from capdoctor.capture.session import Session
from capdoctor.capture.state import Machine, Status
from capdoctor.capture.tracer.inside.status import ACTIVE, INVALIDATED, NONE

TRACE_FOLDER = "CAPDOCTOR_TRACE_DIR"
_SHIMS = Path(__file__).resolve().parent.parent
# What stands in for torch's own functions there, and is named as the program calls it.
_NATIVES = ("streams.py", "graphs.py", "generators.py", "device_info.py")
_NUMBERS = {Status.NONE: NONE, Status.ACTIVE: ACTIVE, Status.INVALIDATED: INVALIDATED}


class _Answer:
    """The present status of one stream."""

    __slots__ = ("_of", "_stream")

    def __init__(self, of: VirtualStatus, stream: int) -> None:
        self._of = of
        self._stream = stream

    @property
    def value(self) -> int:
        """NONE, ACTIVE or INVALIDATED."""
        return self._of.status(self._stream)


class VirtualStatus:
    """Answers for the driver."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def status(self, stream: int) -> int:
        """What ``cudaStreamIsCapturing`` would say."""
        return _NUMBERS[self.machine.status(stream)]

    def asker(self, stream: int) -> tuple[Callable[[], Any], _Answer]:
        """As the driver's: the answer looks when it is read."""
        return int, _Answer(self, stream)

    def capture_id(self, stream: int) -> int | None:
        """The number of the capture that the stream takes part in."""
        capture = self.machine.capture_of(stream)
        return None if capture is None else capture.number


@contextmanager
def tracing(folder: Path, session: Session | None = None) -> Iterator[None]:
    """Trace what is captured in the block, on the virtual device of ``session`` or a real one.

    Where ``folder`` cannot be written the block runs untraced.
    """
    from capdoctor.capture.tracer.inside.tracer import Tracer

    shims = (str(_SHIMS) + os.sep,)
    natives = tuple(str(_SHIMS / name) for name in _NATIVES) if session is not None else ()
    source = VirtualStatus(session.machine) if session is not None else None
    tracer = Tracer(str(folder), source, shims, natives)
    tracer.guard.run(tracer.install)
    try:
        yield
    finally:
        tracer.remove()


def traced_if_asked(session: Session | None) -> AbstractContextManager[None]:
    """Trace what is captured in the block if the environment says where to write.

    ``session`` is the virtual device's, None on a real one.
    """
    folder = os.environ.get(TRACE_FOLDER)
    return tracing(Path(folder), session) if folder else nullcontext()
