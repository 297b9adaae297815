"""Programs that do what captures meet outside tests: each comes out as untraced, rightly named."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.capture.tracer.traced import Names, run
from tests.gpu.tracer.cases import capturing, operator

Program = Callable[[Names], object]
MANY = "".join("    try: x.cpu()\n    except RuntimeError: pass\n" for _ in range(25))


def caught_in_many_lines_and_then_not(n: Names) -> None:
    exec(f"def many(x):\n{MANY}    x.tolist()", n)  # noqa: S102 - lines of our own
    with capturing(n):
        n["many"](n["x"])


def apply(function: Callable[[], object]) -> object:
    return function()


def caught_in_the_same_line_and_then_not(n: Names) -> None:
    with capturing(n):
        with suppress(RuntimeError):
            apply(n["x"].cpu)
        apply(n["x"].tolist)


def caught_again_and_again(n: Names) -> None:
    with capturing(n):
        for refused in (n["x"].cpu, n["x"].tolist) * 200:
            with suppress(RuntimeError):
                apply(refused)


def profiler_changed_in_a_capture(n: Names) -> None:
    with capturing(n):
        sys.setprofile(None)
        n["x"].add_(1)
    with capturing(n):
        torch.cuda.synchronize()


class CountingMode(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count it."""
        self.seen += 1
        return func(*args, **(kwargs or {}))


def mode_left_inside(n: Names, last: Callable[[Names], object]) -> object:
    mode = CountingMode()
    mode.__enter__()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(n["cur"]):
        graph.capture_begin()
        try:
            n["x"].add_(1)
            mode.__exit__(None, None, None)
            last(n)
        finally:
            graph.capture_end()
    n["x"].sub_(1)
    return mode.seen, torch._C._len_torch_dispatch_stack()


def under_a_mode_of_the_program(n: Names) -> None:
    with CountingMode(), capturing(n), CountingMode():
        n["s"].item()


def broken_by_a_mode_of_the_program(n: Names) -> None:
    class Curious(CountingMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            """Look at the values."""
            n["s"].item()
            return func(*args, **(kwargs or {}))

    with capturing(n), Curious():
        n["x"].add_(1)


def tried_again_while_the_failure_is_handled(n: Names) -> None:
    def attempt(*, strict: bool) -> None:
        with capturing(n):
            try:
                n["x"].cpu()
            except RuntimeError:
                if strict:
                    raise
            n["x"].add_(1)

    try:
        attempt(strict=True)
    except RuntimeError:
        attempt(strict=False)


def slot_tried_again_otherwise(n: Names) -> None:
    def attempt(step: Callable[[], object]) -> None:
        with capturing(n):
            step()

    try:
        attempt(lambda: n["x"][[0, 1]])
    except RuntimeError:
        attempt(lambda: n["x"].add_(1))


def stack_full_and_then_refused(n: Names) -> None:
    def deeper() -> None:
        deeper()

    with capturing(n):
        with suppress(RecursionError):
            deeper()
        n["s"].item()


def fails(*_: object) -> Any:
    raise ValueError


class Untold(RuntimeError):
    """Code of the program's own that fails wherever somebody looks at it."""

    __str__ = __eq__ = __bool__ = fails
    __hash__ = RuntimeError.__hash__


def hostile_exception(n: Names) -> str | None:
    def fold(x: object) -> None:
        raise Untold

    call = operator(n, fold)
    try:
        with capturing(n):
            call(n["x"])
    except Untold as error:
        return type(error).__name__
    return None


def hostile_exception_around(n: Names) -> str | None:
    try:
        with capturing(n):
            try:
                n["x"].cpu()
            except RuntimeError as error:
                raise Untold from error
    except Untold as error:
        return type(error).__name__
    return None


def in_generator(n: Names) -> None:
    def steps() -> Iterator[None]:
        with capturing(n):
            yield
            n["x"].add_(1)
            yield
            n["eo"].synchronize()

    list(steps())


def in_coroutine(n: Names) -> None:
    async def steps() -> AsyncIterator[None]:
        with capturing(n):
            await asyncio.sleep(0)
            n["x"].add_(1)
            yield
            n["eo"].synchronize()

    async def consume() -> None:
        async for _ in steps():
            await asyncio.sleep(0)

    asyncio.run(consume())


def graphed_callable(n: Names) -> None:
    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.sum().item()
            return x

    torch.cuda.make_graphed_callables(Layer(), (n["x"],))


def second_of_two_events(n: Names) -> None:
    other = torch.cuda.Event()
    with capturing(n):
        n["x"].add_(1)
        n["e"].record()
        other.record()
    for event in (n["e"], other):
        with suppress(RuntimeError):
            n["S2"].wait_event(event)


def interval_to_an_event_of_a_capture(n: Names) -> None:
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    with capturing(n):
        n["x"].add_(1)
        second.record()
    first.elapsed_time(second)


def argument_refused(n: Names) -> None:
    with capturing(n):
        n["x"].add_(1)
        n["e"].record()
    with suppress(TypeError, AttributeError):
        n["e"].wait("no stream")


def ended_by_an_interrupt(n: Names) -> str:
    try:
        with capturing(n):
            n["x"].add_(1)
            signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return "stopped"
    return "went on"


@dataclass(frozen=True)
class Odd:
    program: Program
    named: tuple[str, ...] = ()


ODD = {
    "many lines": Odd(caught_in_many_lines_and_then_not, ("raised torch.Tensor.tolist .* many",)),
    "same line": Odd(
        caught_in_the_same_line_and_then_not, ("raised torch.Tensor.tolist .* apply",)
    ),
    "again and again": Odd(caught_again_and_again),
    "profiler": Odd(profiler_changed_in_a_capture, ("invalidated torch.cuda.synchronize ",)),
    "mode": Odd(lambda n: mode_left_inside(n, lambda m: m["x"].mul_(2))),
    "mode, refused": Odd(
        lambda n: mode_left_inside(n, lambda m: m["s"].item()),
        ("invalidated aten::_local_scalar_dense .* <lambda>",),
    ),
    "under modes": Odd(
        under_a_mode_of_the_program, ("invalidated aten::_local_scalar_dense .* under_a_mode",)
    ),
    "by a mode": Odd(
        broken_by_a_mode_of_the_program,
        ("invalidated aten::item .* __torch_dispatch__",),
    ),
    "tried again": Odd(
        tried_again_while_the_failure_is_handled, ("raised torch.Tensor.cpu .* attempt",)
    ),
    "slot tried again": Odd(slot_tried_again_otherwise, ("raised aten::index.Tensor ",)),
    "full stack": Odd(
        stack_full_and_then_refused, ("invalidated aten::_local_scalar_dense .* stack_full",)
    ),
    "hostile": Odd(hostile_exception, ("raised capdoctor_proof_.*::fold ",)),
    "hostile around": Odd(hostile_exception_around, ("raised torch.Tensor.cpu ",)),
    "generator": Odd(in_generator, ("invalidated torch.cuda.Event.synchronize .* steps",)),
    "coroutine": Odd(in_coroutine, ("invalidated torch.cuda.Event.synchronize .* steps",)),
    "graphed": Odd(graphed_callable, ("invalidated aten::_local_scalar_dense .* forward",)),
    "two events": Odd(second_of_two_events, ("event_outside torch.cuda.Event.wait ",) * 2),
    "interval": Odd(
        interval_to_an_event_of_a_capture, ("event_outside torch.cuda.Event.elapsed_time ",)
    ),
    "argument": Odd(argument_refused),
    "interrupt": Odd(ended_by_an_interrupt),
}


@pytest.mark.parametrize("name", ODD)
def test_the_outcome_stays_and_the_operation_is_named(name: str, tmp_path: Path) -> None:
    plain, traced = run(ODD[name].program, None), run(ODD[name].program, tmp_path)
    assert (traced.result, traced.errors) == (plain.result, plain.errors)
    assert traced.trace is not None
    assert traced.trace.faults == ()
    told = [
        f"{one.kind} {one.call.operation} at {one.call.place and one.call.place.function}"
        for one in traced.trace.offences
    ]
    assert len(told) == len(ODD[name].named), told
    for said, wanted in zip(told, ODD[name].named, strict=True):
        assert re.match(wanted, said)
    assert torch._C._len_torch_dispatch_stack() == 0
    assert sys.getprofile() is None


def test_one_call_that_breaks_two_captures_is_named_for_both(tmp_path: Path) -> None:
    def program(n: Names) -> None:
        graphs = [torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()]
        for graph, stream in zip(graphs, (n["cur"], n["S2"]), strict=True):
            with torch.cuda.stream(stream):
                graph.capture_begin()
        with suppress(RuntimeError):
            n["eo"].synchronize()
        for graph, stream in zip(graphs, (n["cur"], n["S2"]), strict=True):
            with torch.cuda.stream(stream), suppress(RuntimeError):
                graph.capture_end()

    trace = run(program, tmp_path).trace
    assert trace is not None
    told = [(one.call.number, one.kind.value, one.call.operation) for one in trace.offences]
    wait = "torch.cuda.Event.synchronize"
    assert told == [(1, "invalidated", wait), (2, "invalidated", wait)]
