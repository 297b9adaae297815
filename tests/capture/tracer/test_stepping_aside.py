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
    with pytest.raises(OSError, match="file"):  # said at once where the tracer is asked for
        run(illegal, tmp_path / "file" / "trace")
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


def test_leaving_takes_off_this_mode_and_no_other() -> None:
    ours: Any = Counting()
    ours.may_enter = True
    above, below = Counting(), Counting()
    operators._push(below)
    try:
        operators.enter(ours)
        operators.enter(ours)
        operators._push(above)
        operators.leave(ours)
        assert torch._C._len_torch_dispatch_stack() == 2
        operators.leave(ours)
        assert operators._pop(None) is above
    finally:
        assert operators._pop(None) is below


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
