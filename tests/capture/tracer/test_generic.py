"""``torch.Stream`` and ``torch.Event`` themselves, whose methods are of C and cannot be wrapped.

The virtual device replaces both, so the calls of C here fail for a reason that needs no device: one
argument too many. What the profile hook is told of them is the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from capdoctor.capture.tracer.inside.arguments import events_on_line
from capdoctor.capture.tracer.inside.calls import OWN, Hidden
from capdoctor.capture.tracer.inside.guard import Guard
from capdoctor.capture.tracer.inside.journal import Journal
from capdoctor.capture.tracer.inside.profile_hook import ProfileHook
from capdoctor.capture.tracer.inside.watch import Watch
from capdoctor.model import CaptureTrace
from tests.capture.tracer.traced import Names, run
from tests.gpu.tracer.cases import capturing


class Group:
    """What an engine's layers share."""

    def __init__(self) -> None:
        self.side = torch._C.Stream(device="cpu")
        self.ready, self.other = torch.cuda.Event(), torch.cuda.Event()

    def record(self) -> None:
        self.ready.record()
        self.other.record()


def awaiting(wait: Callable[[Group], None]) -> Callable[[Names], None]:
    """A case that waits between two captures, as an eager break of a piecewise capture does."""

    def case(n: Names) -> None:
        held = Group()
        with capturing(n):
            n["x"].add_(1)
            held.record()
        wait(held)

    return case


def trace_of(case: Any, folder: Path) -> CaptureTrace:
    trace = run(case, folder).trace
    assert trace is not None
    assert trace.faults == ()
    return trace


def test_a_generic_streams_wait_names_the_event_of_its_line(tmp_path: Path) -> None:
    def convert(held: Group) -> None:
        held.side.wait_event(held.ready, "too many")

    (offence,) = trace_of(awaiting(convert), tmp_path).offences
    assert (offence.kind, offence.call.operation) == ("event_outside", "torch.Stream.wait_event")
    assert "held.side.wait_event" in offence.call.source
    assert offence.earlier is not None
    assert "self.ready.record()" in offence.earlier.source


def test_a_line_that_names_no_event_is_taken_to_mean_the_last_one(tmp_path: Path) -> None:
    def convert(held: Group) -> None:
        arguments = (held.ready, "too many")
        held.side.wait_event(*arguments)

    (offence,) = trace_of(awaiting(convert), tmp_path).offences
    assert offence.earlier is not None
    assert "self.other.record()" in offence.earlier.source


def test_a_wait_for_an_event_that_no_capture_recorded_is_no_offence(tmp_path: Path) -> None:
    def convert(held: Group) -> None:
        fresh = torch.cuda.Event()
        fresh.record()
        held.side.wait_event(fresh, "too many")

    assert trace_of(awaiting(convert), tmp_path).offences == ()


def test_no_property_is_computed_to_find_an_event() -> None:
    class Lazy:
        asked = 0

        @property
        def ready(self) -> object:
            self.asked += 1
            return torch.Event("cpu")

    lazy, held, found = Lazy(), torch.Event("cpu"), list[Any]()

    def look(frame: FrameType, *more: object) -> None:
        del more
        found.append(events_on_line(frame, (torch.Event,)))

    def wait(event: object, lazy: Lazy) -> None:
        look(sys._getframe(), event, lazy, lambda: lazy.ready)

    wait(held, lazy)
    assert found == [[held]]
    assert lazy.asked == 0


class HeldEvent(torch.Event):
    """An event of a handle, without a device."""

    event_id = 7


class Told(Watch):
    """Remembers which failures it is told of."""

    def __init__(self, journal: Journal, hidden: Hidden) -> None:
        super().__init__(journal, None, hidden)
        self.told: list[str] = []
        self.events = {7: None}  # type: ignore[dict-item]

    def event_failed(self, event: int, function: str, frame: Any, error: Any) -> None:
        assert (event, error) == (7, None)
        assert frame is not None
        self.told.append(function)


@pytest.mark.parametrize(
    ("within", "told"), [(OWN + "methods.py", []), ("program.py", ["torch.cuda.Event.wait"])]
)
def test_a_wrapped_method_alone_tells_of_what_it_calls(
    within: str, told: list[str], tmp_path: Path
) -> None:
    journal, hidden = Journal(str(tmp_path)), Hidden("/torch/")
    watch = Told(journal, hidden)
    hook = ProfileHook(watch, Guard(journal), hidden, lambda: None)
    hook.generic = HeldEvent
    names: dict[str, Any] = {"event": HeldEvent("cpu")}
    exec(compile("def wait_event():\n    event.wait('nothing')", "/torch/s.py", "exec"), names)  # noqa: S102
    exec(compile("def use():\n    wait_event()", within, "exec"), names)  # noqa: S102
    sys.setprofile(hook)
    try:
        names["use"]()
    except (TypeError, RuntimeError):
        pass
    finally:
        sys.setprofile(None)
    assert watch.told == told
