"""Going on after a broken rule: what is written down, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from capdoctor.capture.device import VirtualDevice
from capdoctor.model import Finding


def _collect(
    body: Callable[[torch.Tensor], object], as_torch: str = "2.11"
) -> tuple[tuple[Finding, ...], torch.Tensor]:
    """Capture ``body`` on a device that writes down; give the findings and the tensor's values."""
    with VirtualDevice(as_torch=as_torch, stop_at_first=False) as device:
        x = torch.zeros(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            body(x)
        graph.replay()
        return device.findings, x.cpu()


def test_a_legal_body_has_no_findings() -> None:
    findings, x = _collect(lambda x: x.add_(1))
    assert findings == ()
    assert x.tolist() == [1.0] * 4


def test_all_findings_of_a_run_are_kept_and_values_flow() -> None:
    def body(x: torch.Tensor) -> None:
        if x.sum() == 0:
            x[0] = 7.0
        torch.cuda.synchronize()
        x += float(x.max())

    findings, _x = _collect(body)
    assert [f.rule for f in findings] == [
        "host_read", "pageable_copy", "device_synchronize", "host_read",
    ]  # fmt: skip
    assert [f.would_raise.code for f in findings] == [900, None, 900, 900]
    assert [f.invalidates for f in findings] == [True, False, True, True]


def test_a_finding_names_the_line_of_the_user() -> None:
    def inner(x: torch.Tensor) -> None:
        x[1] = 2.0

    findings, _x = _collect(inner)
    [finding] = findings
    assert finding.file.endswith("test_findings.py")
    assert finding.function == "inner"
    assert finding.stack[-1].line == finding.line
    assert finding.stack[-2].function == "_collect"
    assert not any("capdoctor/capture/" in frame.file for frame in finding.stack)
    assert finding.message.startswith("copy_: Cannot copy between CPU and CUDA tensors")
    assert finding.legal_way


def test_the_line_is_found_through_torchs_own_python() -> None:
    def body(x: torch.Tensor) -> None:
        torch.nn.utils.clip_grad_norm_([torch.nn.Parameter(x)], 1.0)
        torch.testing.assert_close(x, x.clone())

    findings, _x = _collect(body)
    assert findings
    assert all(f.function == "body" for f in findings)


def test_an_unjoined_stream_is_found_at_the_end() -> None:
    def body(x: torch.Tensor) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.add_(1)

    findings, x = _collect(body)
    assert [(f.rule, f.operation) for f in findings] == [
        ("unjoined_stream", "CUDAGraph.capture_end")
    ]
    assert x.tolist() == [1.0] * 4


def test_states_stay_as_if_the_illegal_call_had_not_been_made() -> None:
    def body(x: torch.Tensor) -> None:
        event = torch.cuda.Event()
        event.record(torch.cuda.default_stream())
        torch.cuda.current_stream().wait_event(event)
        x.add_(1)

    findings, x = _collect(body)
    assert [f.rule for f in findings] == ["wait_uncaptured_work"]
    assert x.tolist() == [1.0] * 4


def test_too_little_memory_is_found_and_the_run_goes_on() -> None:
    with VirtualDevice(memory_budget=1 << 10, stop_at_first=False) as device:
        x = torch.zeros(1 << 10, device="cuda")
    assert [f.rule for f in device.findings] == ["out_of_memory"]
    assert device.findings[0].would_raise.type == "OutOfMemoryError"
    assert x.shape == (1 << 10,)


def test_operations_are_counted_and_host_work_is_not() -> None:
    with VirtualDevice() as device:
        torch.zeros(3) + 1
        assert device.covered.operations == 0
        torch.zeros(3, device="cuda").add_(1).mul_(2)
        assert device.covered.operations == 3
        assert device.covered.unknown == ()


@pytest.mark.parametrize("as_torch", ["2.7", "2.10", "2.11", "2.13"])
def test_the_same_bug_is_found_whatever_the_torch(as_torch: str) -> None:
    def body(x: torch.Tensor) -> None:
        x[0] = 1.0

    findings, _x = _collect(body, as_torch)
    assert [f.rule for f in findings] == ["pageable_copy"]
    assert (findings[0].would_raise.code == 900) is (as_torch in ("2.7", "2.10"))


def test_a_refused_capture_gives_one_finding_and_the_outer_one_goes_on() -> None:
    def body(x: torch.Tensor) -> None:
        inner = torch.cuda.CUDAGraph()
        inner.capture_begin()
        x.add_(1)
        inner.capture_end()
        inner.replay()

    findings, x = _collect(body)
    assert [f.rule for f in findings] == ["capture_begin_twice", "replay_in_capture"]
    assert x.tolist() == [1.0] * 4


def test_an_end_on_another_stream_is_found_and_the_capture_is_over() -> None:
    with VirtualDevice(as_torch="2.11", stop_at_first=False) as device:
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            graph.capture_begin()
        graph.capture_end()
        torch.cuda.synchronize()
    assert [f.rule for f in device.findings] == ["capture_end_other_stream"]


@pytest.mark.parametrize(
    ("illegal", "rule"),
    [
        (lambda x: x.sum().item(), "host_read"),
        (lambda x: x.copy_(torch.ones(4)), "pageable_copy"),
        (lambda _x: torch.cuda.synchronize(), "device_synchronize"),
        (lambda _x: torch.empty(1 << 20, device="cuda"), "out_of_memory"),
    ],
)
def test_what_is_raised_is_written_down_too(
    illegal: Callable[[torch.Tensor], object], rule: str
) -> None:
    with VirtualDevice(memory_budget=1 << 20) as device:
        x = torch.zeros(4, device="cuda")
        graph, raised = torch.cuda.CUDAGraph(), RuntimeError()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            graph.capture_begin()
            try:
                illegal(x)
            except RuntimeError as error:
                raised = error
            [finding] = device.findings
    assert finding.rule == rule
    assert finding.would_raise.type == type(raised).__name__
    assert finding.would_raise.message == str(raised)


def test_a_graph_freed_in_a_capture_is_written_down_though_nothing_is_raised() -> None:
    with VirtualDevice() as device:
        old = torch.cuda.CUDAGraph()
        with torch.cuda.graph(old):
            torch.zeros(4, device="cuda")
        with pytest.raises(RuntimeError), torch.cuda.graph(torch.cuda.CUDAGraph()):
            old.reset()
        first, *_ = device.findings
    assert first.operation == "CUDAGraph.reset"
    assert (
        first.function == "test_a_graph_freed_in_a_capture_is_written_down_though_nothing_is_raised"
    )
