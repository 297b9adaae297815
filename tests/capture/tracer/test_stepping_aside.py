"""The tracer's own faults, and the hooks that others have set: the program goes on unchanged."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from capdoctor.capture.device import VirtualDevice
from capdoctor.capture.tracer.inside import operators, profile_hook, watch
from capdoctor.capture.tracer.inside.calls import Hidden
from capdoctor.capture.tracer.inside.guard import Guard
from capdoctor.capture.tracer.inside.journal import Journal
from capdoctor.capture.tracer.inside.methods import Methods
from capdoctor.capture.tracer.virtual import tracing
from tests.capture.tracer.traced import Names, journal_lines, run
from tests.gpu.tracer.cases import CASES, capturing


def legal(n: Names) -> object:
    with capturing(n):
        n["x"].add_(1)
        n["e"].record()
        n["x"].mul_(3)
    return None


def illegal(n: Names) -> object:
    with capturing(n):
        n["s"].item()
    return None


@pytest.mark.parametrize("where", ["broken", "begun", "ending", "ended", "done", "after", "call"])
@pytest.mark.parametrize("program", [legal, illegal, CASES["flagship"].run])
def test_a_fault_is_written_down_once_and_changes_nothing(
    where: str, program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run(program, None)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the tracer's own")

    monkeypatch.setattr(watch.Watch, where, fail)
    traced = run(program, tmp_path)
    assert (plain.result, plain.errors) == (traced.result, traced.errors)
    assert traced.trace is not None
    assert len(traced.trace.faults) <= 1
    assert all("ZeroDivisionError" in fault for fault in traced.trace.faults)
    assert sys.getprofile() is None
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    plain = run(illegal, None)
    assert run(illegal, tmp_path / "file" / "trace") == plain
    assert run(illegal, None) == plain


def test_a_profiler_that_is_on_goes_on_and_is_put_back(tmp_path: Path) -> None:
    seen: list[str] = []

    def profiler(frame: Any, event: str, arg: Any) -> None:
        seen.append(event)

    def program(n: Names) -> object:
        sys.setprofile(profiler)
        try:
            legal(n)
            del seen[:-200]
            after = sys.getprofile()
            assert after is profiler
        finally:
            sys.setprofile(None)
        return None

    traced = run(program, tmp_path)
    assert traced.errors == ()
    assert "c_call" in seen


def test_no_hook_stays_behind(tmp_path: Path) -> None:
    graphs, events = torch.cuda.graphs.CUDAGraph, torch.cuda.Event
    before = (graphs.capture_begin, graphs.capture_end, events.wait)
    for program in (legal, illegal, CASES["flagship"].run):
        run(program, tmp_path)
    assert (graphs.capture_begin, graphs.capture_end, events.wait) == before
    assert sys.getprofile() is None
    assert getattr(threading, "_profile_hook", None) is None
    assert torch._C._len_torch_dispatch_stack() == 0


class Counting(TorchDispatchMode):
    """Another mode."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count it."""
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_that_outlives_the_capture_stays_on_alone(tmp_path: Path) -> None:
    def program(n: Names) -> object:
        mode = Counting()
        with capturing(n):
            mode.__enter__()
            n["x"].add_(1)
        n["x"].mul_(2)
        mode.__exit__(None, None, None)
        n["x"].sub_(1)
        return mode.seen

    plain, traced = run(program, None), run(program, tmp_path)
    assert plain == traced.__class__(traced.result, traced.errors, None)
    assert "mul_" in plain.result
    assert "sub_" not in plain.result


class Ours(Counting):
    """As much of the tracer's mode as its place on the stack needs."""

    may_enter = True

    def __init__(self, under: object = None) -> None:
        super().__init__()
        self.under = under

    def belongs_above(self, other: object) -> bool:
        return other is self.under


def stack_of_modes() -> list[object]:
    return [operators._at(index) for index in range(operators._depth())]


@pytest.mark.parametrize("device", [True, False])
def test_the_mode_lies_below_the_programs_and_leaves_them_as_they_were(*, device: bool) -> None:
    below, above = Counting(), Counting()
    ours: Any = Ours(below if device else None)
    operators._push(below)
    try:
        operators.enter(ours)
        operators.enter(ours)
        operators._push(above)
        assert stack_of_modes() == ([below, ours, above] if device else [ours, below, above])
        operators.leave(ours)
        assert stack_of_modes() == [below, above]
        operators.leave(ours)
        assert operators._pop(None) is above
    finally:
        assert operators._pop(None) is below


def test_what_somebody_has_put_in_the_place_of_a_wrapper_stays(tmp_path: Path) -> None:
    def theirs(*_: object) -> None:
        """Put there after the tracer."""

    class Graph:
        def capture_begin(self) -> None:
            """Begin."""

        capture_end = capture_begin

    class Bare:
        pass

    begin, journal = Graph.capture_begin, Journal(str(tmp_path))
    quiet = watch.Watch(journal, None, Hidden("/torch/"))
    methods = Methods(quiet, Guard(journal), lambda *_: None, lambda *_: None)
    methods.wrap(Graph, Bare, Bare)
    assert Graph.capture_begin is not begin
    Graph.capture_end = theirs  # type: ignore[method-assign]
    methods.undo()
    assert Graph.capture_begin is begin
    assert Graph.capture_end is theirs


def test_a_fault_leaves_the_tracer_even_if_nothing_can_be_written(tmp_path: Path) -> None:
    class Full(Journal):
        def write(self, *_: object, **__: object) -> None:
            raise MemoryError

    guard = Guard(Full(str(tmp_path)))
    assert guard.run(lambda: 1 // 0) is None
    assert guard.aside


def test_a_full_stack_is_the_programs_and_no_fault(tmp_path: Path) -> None:
    def deeper() -> None:
        deeper()

    guard = Guard(Journal(str(tmp_path)))
    assert guard.run(deeper) is None
    assert not guard.aside
    assert guard.run(lambda: 7) == 7


def test_the_hook_is_gone_when_the_function_that_captured_has_returned(tmp_path: Path) -> None:
    hooks: list[object] = []

    def program(n: Names) -> object:
        def capture() -> None:
            with capturing(n):
                n["x"].add_(1)
            hooks.append(sys.getprofile())

        def outer() -> None:
            capture()

        outer()
        hooks.append(sys.getprofile())
        return None

    run(program, tmp_path)
    assert isinstance(hooks[0], profile_hook.ProfileHook)
    assert hooks[1] is None


def test_nothing_is_written_for_what_goes_well(tmp_path: Path) -> None:
    run(CASES["segments"].run, tmp_path)
    kinds = [line["kind"] for line in journal_lines(tmp_path)]
    assert kinds[0] == "installed"
    assert set(kinds[1:]) == {"captures"}


def test_two_captures_at_once_are_told_apart(tmp_path: Path) -> None:
    with VirtualDevice(as_torch="2.11") as device, tracing(tmp_path, device.session):
        first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        one, two = torch.cuda.Stream(), torch.cuda.Stream()
        value = torch.zeros((), device="cuda")
        with torch.cuda.stream(one):
            first.capture_begin(capture_error_mode="relaxed")
        with torch.cuda.stream(two):
            second.capture_begin(capture_error_mode="relaxed")
            with pytest.raises(RuntimeError):
                value.item()
            with pytest.raises(RuntimeError):
                second.capture_end()
        with torch.cuda.stream(one):
            first.capture_end()
    offences = [line for line in journal_lines(tmp_path) if line["kind"] == "offence"]
    assert [line["number"] for line in offences] == [2]


class HalvedGraph:
    """A graph whose end has two halves, as from torch 2.14 on."""

    def capture_begin(self) -> None:
        """Begin."""

    def capture_end_pre(self) -> None:
        """End the capture."""

    def capture_end(self) -> None:
        """End the capture and make the graph ready."""
        self.capture_end_pre()


@pytest.mark.parametrize("end", [HalvedGraph.capture_end, HalvedGraph.capture_end_pre])
def test_each_capture_ends_once_however_it_is_ended(end: Any, tmp_path: Path) -> None:
    class Graph(HalvedGraph):
        """A class of its own: the wrappers stay on it."""

    class Idle:
        def asker(self, stream: int) -> tuple[Any, Any]:
            return int, Status(stream)

        def capture_id(self, stream: int) -> int:
            return stream

    class Status:
        def __init__(self, value: int) -> None:
            self.value = value

    journal = Journal(str(tmp_path))
    quiet = watch.Watch(journal, Idle(), Hidden("/torch/"))
    ended: list[object] = []
    methods = Methods(
        quiet, Guard(journal), lambda graph, _frame: quiet.begun(graph, 1), ended.append
    )
    methods.wrap(Graph, Idle, Idle)
    for _ in range(2):
        graph = Graph()
        graph.capture_begin()
        getattr(graph, end.__name__)()
    assert quiet.captures == 2
    assert quiet.running == []
    assert sum(one is not None for one in ended) == 2
