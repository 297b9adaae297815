"""Stream and Event as ``torch.cuda`` has them, on the state machine."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from types import TracebackType
from typing import Any, ClassVar, Self

from capdoctor.capture.session import DEVICE, Session
from capdoctor.capture.state import LEGACY_STREAM, EventState, Fault

_HANDLE_BASE = 0x5CA0_0000
_HANDLE_STEP = 0x40


class Stream:
    """A stream of the virtual device. Two objects with one handle are the same stream."""

    session: ClassVar[Session]
    _handles: ClassVar[itertools.count[int]] = itertools.count(1)

    def __init__(
        self, device: Any = None, priority: int = 0, *, stream_id: int | None = None, **_: Any
    ) -> None:
        from capdoctor.capture.factories import is_cuda_device

        if device is not None:
            is_cuda_device(device)
        if stream_id is None:
            stream_id = _HANDLE_BASE + _HANDLE_STEP * next(self._handles)
        self.stream_id = self.cuda_stream = self.native_handle = stream_id
        self.priority = priority
        self.device = DEVICE
        self.device_index = 0
        self.device_type = 1

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority, as an H200 has them."""
        return 0, -5

    def wait_event(self, event: Event) -> None:
        """Make later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work wait for all work of another stream up to now."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Say whether all work is done: always, outside a capture."""
        session, thread = self.session, threading.get_ident()
        fault = session.machine.wait_for_stream(self.cuda_stream, thread, "stream_query")
        session.judge(fault, "Stream.query")
        return True

    def synchronize(self) -> None:
        """Wait for all work on the host."""
        session, thread = self.session, threading.get_ident()
        fault = session.machine.wait_for_stream(self.cuda_stream, thread, "stream_synchronize")
        session.judge(fault, "Stream.synchronize")

    def is_capturing(self) -> bool:
        """Say whether the stream takes part in a capture."""
        return self.session.machine.capture_of(self.cuda_stream) is not None

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol of CUDA's own Python packages: version and handle."""
        return 0, self.cuda_stream

    def __enter__(self) -> Self:
        """Make it current, as ``torch.Stream`` allows."""
        outer = self.__dict__.setdefault("_outer", [])
        outer.append(self.session.local.stream)
        self.session.local.stream = self.cuda_stream
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Make the former stream current again."""
        self.session.local.stream = self.__dict__["_outer"].pop()

    def __eq__(self, other: object) -> bool:
        """Streams are equal when their handles are."""
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self) -> int:
        """As torch hashes them."""
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        """As torch shows them."""
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its handle."""

    def __init__(self, stream_ptr: int, device: Any = None, **_: Any) -> None:
        super().__init__(device, stream_id=stream_ptr)


class Event:
    """An event of the virtual device."""

    session: ClassVar[Session]
    _handles: ClassVar[itertools.count[int]] = itertools.count(1)

    def __init__(
        self,
        device: Any = None,
        *args: bool,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        flags = dict(zip(("blocking", "interprocess", "external"), args, strict=False))
        timing = device if isinstance(device, bool) else enable_timing
        self.enable_timing = timing
        self.blocking = flags.get("blocking", blocking)
        self.interprocess = flags.get("interprocess", interprocess)
        self.device = DEVICE
        self.cuda_event = 0
        self.state = EventState(external=flags.get("external", external))
        self._time = 0.0

    @property
    def event_id(self) -> int:
        """The handle, 0 before the first record."""
        return self.cuda_event

    def record(self, stream: Stream | None = None) -> None:
        """Record it on a stream, the current one if none is given."""
        session = self.session
        handle = session.local.stream if stream is None else stream.cuda_stream
        self._create(handle)
        session.judge(session.machine.record(self.state, handle), "Event.record")
        self._time = time.perf_counter()

    def _create(self, stream: int) -> None:
        """The driver's event comes into being at the first record."""
        capture = self.session.machine.capture_of(stream)
        if not self.cuda_event and self.interprocess and capture is not None:
            self.session.judge(Fault("interprocess_event", (capture,)), "Event.record")
        if not self.cuda_event:
            self.cuda_event = _HANDLE_BASE * 2 + _HANDLE_STEP * next(self._handles)

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work of a stream wait for it."""
        session = self.session
        handle = session.local.stream if stream is None else stream.cuda_stream
        session.judge(session.machine.wait(handle, self.state), "Stream.wait_event")

    def query(self) -> bool:
        """Say whether it has fired: always, outside a capture."""
        self._ask("Event.query")
        return True

    def synchronize(self) -> None:
        """Wait for it on the host."""
        self._ask("Event.synchronize")

    def _ask(self, operation: str) -> None:
        session, thread = self.session, threading.get_ident()
        session.judge(session.machine.ask_event(self.state, thread, "event_ask"), operation)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds of real time between two records.

        Raises:
            ValueError: one was made without timing, or was never recorded (torch's words).
        """
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        self._ask("Event.elapsed_time")
        end_event._ask("Event.elapsed_time")
        return (end_event._time - self._time) * 1000

    def ipc_handle(self) -> bytes:
        """A handle for other processes; records nothing."""
        self._create(self.session.local.stream)
        return self.cuda_event.to_bytes(64, "little")

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)

    def __repr__(self) -> str:
        """As torch shows them."""
        state = f"{self.cuda_event:#x}" if self.cuda_event else "uninitialized"
        return f"<torch.cuda.Event {state}>"


class _Either(type):
    """Lets ``isinstance`` go on working while ``torch.Stream`` and ``torch.Event`` are replaced."""

    real: Any
    virtual: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (cls.real, cls.virtual))


def generic(real: Any, virtual: Any, name: str) -> Any:
    """A stand-in for ``torch.Stream`` or ``torch.Event`` that serves both devices."""
    from capdoctor.capture.factories import is_cuda_device

    def new(cls: Any, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        del cls
        if device is None or is_cuda_device(device):
            return virtual(**kwargs)
        return real(device, *args, **kwargs)

    return _Either(name, (), {"__new__": new, "real": real, "virtual": virtual})


def current_stream(device: Any = None) -> Stream:
    """The calling thread's stream."""
    del device
    return Stream(stream_id=Stream.session.local.stream)


def current_handle(device: Any = None) -> int:
    """The calling thread's stream as a plain number."""
    del device
    return Stream.session.local.stream


def default_stream(device: Any = None) -> Stream:
    """The legacy default stream."""
    del device
    return Stream(stream_id=LEGACY_STREAM)


def set_stream(stream: Stream | None) -> None:
    """Make a stream current in the calling thread."""
    if stream is not None:
        Stream.session.local.stream = stream.cuda_stream


def external_stream(data_ptr: int, device: Any = None) -> ExternalStream:
    """Wrap a handle."""
    return ExternalStream(data_ptr, device)


def synchronize(device: Any = None) -> None:
    """Wait for the whole device on the host."""
    del device
    session = Stream.session
    session.judge(session.machine.synchronize(threading.get_ident()), "torch.cuda.synchronize")


def is_current_stream_capturing() -> bool:
    """True for a running capture and for a broken one, as on the device."""
    return Stream.session.capturing()
