"""The state machine: rules of streams, events and captures, as properties."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from capdoctor.capture.error_modes import Mode
from capdoctor.capture.state import LEGACY_STREAM, Capture, EventState, Fault, Machine, Status

MAIN, OTHER = 1, 2  # threads


def _begun(machine: Machine, stream: int, mode: Mode = Mode.GLOBAL, thread: int = MAIN) -> Capture:
    capture = machine.begin(stream, mode, thread)
    assert isinstance(capture, Capture)
    return capture


def _fork(machine: Machine, source: int, target: int) -> Fault | None:
    event = EventState()
    assert machine.record(event, source) is None
    return machine.wait(target, event)


def _rule(fault: Fault | Capture | None) -> str | None:
    return fault.rule if isinstance(fault, Fault) else None


def test_the_legacy_stream_cannot_be_captured() -> None:
    assert _rule(Machine().begin(LEGACY_STREAM, Mode.GLOBAL, MAIN)) == "capture_on_legacy_stream"


def test_a_fork_without_work_needs_no_join() -> None:
    machine = Machine()
    _begun(machine, 1)
    assert _fork(machine, 1, 2) is None
    assert machine.end(1, MAIN) is None


def test_work_on_a_fork_must_be_joined() -> None:
    machine = Machine()
    _begun(machine, 1)
    _fork(machine, 1, 2)
    machine.launch(2)
    assert _rule(machine.end(1, MAIN)) == "unjoined_stream"
    assert machine.status(1) is Status.NONE


def test_work_after_the_join_is_unjoined_again() -> None:
    machine = Machine()
    _begun(machine, 1)
    _fork(machine, 1, 2)
    machine.launch(2)
    _fork(machine, 2, 1)
    machine.launch(2)
    assert _rule(machine.end(1, MAIN)) == "unjoined_stream"


@given(st.lists(st.integers(2, 6), min_size=1, max_size=6, unique=True))
def test_a_join_through_a_chain_of_streams_counts(chain: list[int]) -> None:
    machine = Machine()
    _begun(machine, 1)
    for source, target in zip([1, *chain], [*chain, 1], strict=True):
        machine.launch(source)
        assert _fork(machine, source, target) is None
    assert machine.end(1, MAIN) is None


def test_an_event_of_an_ended_capture_is_no_argument_any_more() -> None:
    machine = Machine()
    _begun(machine, 1)
    event = EventState()
    machine.record(event, 1)
    machine.end(1, MAIN)
    assert machine.wait(2, event) == Fault("event_of_ended_capture")
    assert _rule(machine.ask_event(event, MAIN, "event_ask")) == "event_of_ended_capture"
    machine.record(event, 1)
    assert machine.wait(2, event) is None


def test_waiting_for_uncaptured_work_breaks_the_capture() -> None:
    machine = Machine()
    event = EventState()
    machine.record(event, 2)
    capture = _begun(machine, 1)
    assert machine.wait(1, event) == Fault("wait_uncaptured_work", (capture,))


def test_a_never_recorded_event_is_no_wait() -> None:
    machine = Machine()
    _begun(machine, 1)
    assert machine.wait(1, EventState()) is None
    assert machine.ask_event(EventState(), MAIN, "event_ask") is None


def test_an_external_event_may_cross_the_border() -> None:
    machine = Machine()
    event = EventState(external=True)
    machine.record(event, 2)
    _begun(machine, 1)
    assert machine.wait(1, event) is None
    machine.record(event, 1)
    machine.end(1, MAIN)
    assert machine.wait(2, event) is None


def test_two_captures_do_not_merge() -> None:
    machine = Machine()
    first, second = _begun(machine, 1), _begun(machine, 2)
    assert _fork(machine, 1, 2) == Fault("merge_captures", (second, first))


def test_the_legacy_stream_cannot_wait_for_captured_work() -> None:
    machine = Machine()
    _begun(machine, 1)
    assert _rule(_fork(machine, 1, LEGACY_STREAM)) == "legacy_stream_waits"


@given(st.sampled_from(Mode), st.sampled_from([MAIN, OTHER]))
def test_unsafe_calls_depend_on_mode_and_thread(mode: Mode, thread: int) -> None:
    machine = Machine()
    capture = _begun(machine, 1, mode)
    fault = machine.unsafe(thread, "event_ask")
    forbidden = mode is Mode.GLOBAL or (mode is Mode.THREAD_LOCAL and thread == MAIN)
    assert (fault is not None) is forbidden
    if fault is not None:
        assert fault.breaks == (capture,)
        assert fault.rule == ("event_ask" if thread == MAIN else "other_thread")


@given(st.sampled_from(Mode), st.sampled_from([MAIN, OTHER]))
def test_the_device_can_never_be_waited_for(mode: Mode, thread: int) -> None:
    machine = Machine()
    capture = _begun(machine, 1, mode)
    fault = machine.synchronize(thread)
    assert fault is not None
    assert fault.breaks == (capture,)


@given(st.sampled_from(Mode))
def test_only_a_relaxed_capture_ends_on_another_thread(mode: Mode) -> None:
    machine = Machine()
    _begun(machine, 1, mode)
    expected = None if mode is Mode.RELAXED else "capture_end_other_thread"
    assert _rule(machine.end(1, OTHER)) == expected


class Captures(RuleBasedStateMachine):
    """Random walks: whatever is asked, the machine's own picture stays consistent."""

    STREAMS = st.integers(0, 4)

    @initialize()
    def make(self) -> None:
        self.machine = Machine()
        self.events = [EventState(), EventState(), EventState(external=True)]

    def apply(self, fault: Fault | Capture | None) -> None:
        if isinstance(fault, Fault):
            self.machine.invalidate(fault)

    @rule(stream=STREAMS, mode=st.sampled_from(Mode), thread=st.integers(1, 2))
    def begin(self, stream: int, mode: Mode, thread: int) -> None:
        before = self.machine.status(stream)
        answer = self.machine.begin(stream, mode, thread)
        fresh = before is Status.NONE and stream != LEGACY_STREAM
        assert isinstance(answer, Capture) is fresh

    @rule(stream=STREAMS, thread=st.integers(1, 2))
    def end(self, stream: int, thread: int) -> None:
        capture = self.machine.capture_of(stream)
        fault = self.machine.end(stream, thread)
        if capture is None:
            assert _rule(fault) == "capture_end_without_begin"
        elif capture.origin == stream:
            assert capture.over
            if capture.status is Status.INVALIDATED:
                assert fault is not None

    @rule(stream=STREAMS)
    def launch(self, stream: int) -> None:
        status = self.machine.status(stream)
        fault = self.machine.launch(stream)
        assert (fault is not None) is (status is Status.INVALIDATED)

    @rule(stream=STREAMS, event=st.integers(0, 2))
    def record(self, stream: int, event: int) -> None:
        self.apply(self.machine.record(self.events[event], stream))

    @rule(stream=STREAMS, event=st.integers(0, 2))
    def wait(self, stream: int, event: int) -> None:
        self.apply(self.machine.wait(stream, self.events[event]))

    @rule(stream=STREAMS, thread=st.integers(1, 2))
    def block(self, stream: int, thread: int) -> None:
        fault = self.machine.wait_for_stream(stream, thread, "stream_synchronize")
        if self.machine.capture_of(stream) is not None:
            assert fault is not None
        self.apply(fault)

    @precondition(lambda self: not self.machine.captures)
    @rule(thread=st.integers(1, 2))
    def anything_goes_when_nothing_captures(self, thread: int) -> None:
        assert self.machine.synchronize(thread) is None
        assert self.machine.unsafe(thread, "event_ask") is None

    @invariant()
    def pictures_agree(self) -> None:
        if not hasattr(self, "machine"):
            return
        assert self.machine.status(LEGACY_STREAM) is Status.NONE
        for stream in range(5):
            capture = self.machine.capture_of(stream)
            assert capture is None or (capture in self.machine.captures and not capture.over)
        for capture in self.machine.captures:
            assert self.machine.capture_of(capture.origin) is capture


TestCaptures = Captures.TestCase
