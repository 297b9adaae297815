"""Run a target under the rules and say what broke them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from capdoctor.capture.checker.arguments import build
from capdoctor.capture.checker.loading import call, call_arguments, functions_of, loaded
from capdoctor.capture.checker.operators import missing_operators, stand_ins
from capdoctor.capture.checker.options import CheckOptions
from capdoctor.capture.checker.placing import place_of_function, placed
from capdoctor.capture.checker.stubs import Unseen, stubbed
from capdoctor.capture.checker.target import Target
from capdoctor.capture.eager_breaks import breaking_functions, breaking_modules
from capdoctor.capture.segments import PiecewiseCapture
from capdoctor.errors import CannotDo
from capdoctor.model import CheckResult, Covered, Finding, Frame

# Languages of device kernels: what is written in them cannot run on a CPU anyway.
KERNEL_LANGUAGES = ("triton", "tilelang", "cutlass", "flydsl", "helion")

if TYPE_CHECKING:
    from capdoctor.capture.device import VirtualDevice


def check(target: Target, options: CheckOptions) -> CheckResult:
    """Capture the target's functions on the virtual device and collect all violations.

    Raises:
        CannotDo: torch is missing, or the target cannot be run at all.
        UsageError: the arguments do not fit the functions.
    """
    _require_torch()
    from capdoctor.capture.device import VirtualDevice

    with ExitStack() as stack:
        operators, kernels = stack.enter_context(stand_ins(options.operators))
        unseen = Unseen(kernels=kernels)
        stack.enter_context(stubbed((*KERNEL_LANGUAGES, *options.stubs), unseen))
        device = VirtualDevice(
            as_torch=options.as_torch, stop_at_first=options.stop_at_first, stubs=operators
        )
        stack.enter_context(device)
        stack.enter_context(missing_operators(unseen))
        module = stack.enter_context(loaded(target))
        stack.enter_context(breaking_modules())
        stack.enter_context(breaking_functions(module, options.eager))
        findings: list[Finding] = []
        for name, function in functions_of(module, target).items():
            arguments = call_arguments(name, function, build(options.arguments))
            at_end = place_of_function(name, function, module)
            run = functools.partial(call, function, arguments)
            findings += _capture(device, name, run, at_end, options, unseen)
            if findings and options.stop_at_first:
                break
        seen = device.covered
    return CheckResult(
        target.text, tuple(findings), Covered(seen.operations, (*seen.unknown, *unseen.names))
    )


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise CannotDo("torch is not installed", "install capdoctor[embedded], or use --static")


def _capture(
    device: VirtualDevice,
    name: str,
    run: Callable[[], Any],
    at_end: Frame,
    options: CheckOptions,
    unseen: Unseen,
) -> list[Finding]:
    """Run one function, eagerly first if asked, and give the findings of its capture."""
    from capdoctor.capture.stacks import user_stack

    for _ in range(options.warm_up):
        _guarded(name, run)
    before, outside = len(device.findings), user_stack()
    capture = captured_in_pieces if options.piecewise else captured_whole
    try:
        _guarded(name, lambda: capture(run))
    except CannotDo as error:
        if len(device.findings) == before:
            raise
        if not options.stop_at_first:
            unseen.hear(f"what follows in {name}: {error.sentence}")
    found = device.findings[before:]
    return placed(found[:1] if options.stop_at_first else found, outside, at_end)


def _guarded(name: str, function: Callable[[], Any]) -> None:
    """Call; what the user's code raises is no finding.

    Raises:
        CannotDo: it raises.
    """
    try:
        function()
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise CannotDo(
            f"{name} raises {type(error).__name__}: {error}",
            "this is no capture error; call the function by itself first, or give a stand-in for"
            " what it lacks here (--op, --stub)",
        ) from error


def captured_whole(function: Callable[[], Any]) -> Any:
    """Capture the call in one graph."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        return function()


def captured_in_pieces(function: Callable[[], Any]) -> Any:
    """Capture the call in segments, broken where an engine would break it."""
    import torch

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), PiecewiseCapture():
        return function()
