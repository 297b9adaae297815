"""Error modes and other threads on the virtual device, and generators that belong to a capture."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from capdoctor.capture.device import VirtualDevice
from capdoctor.capture.error_modes import Mode, call_kinds, forbids

OFFSET = "Offset increment outside graph capture"


@pytest.fixture
def device() -> Iterator[VirtualDevice]:
    with VirtualDevice(as_torch="2.11") as on:
        yield on


def elsewhere(call: Callable[[], object]) -> BaseException | None:
    """Do it in another thread; give what it raised there."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except RuntimeError as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0]


def test_every_kind_of_call_is_known_for_every_mode() -> None:
    for row in call_kinds().values():
        assert set(row.forbidden) == set(Mode)
        assert row.source.startswith("measured")
        assert all(threads <= {"own", "other"} for threads in row.forbidden.values())


def test_a_stricter_mode_forbids_whatever_a_laxer_one_does() -> None:
    for row in call_kinds().values():
        strict, middle, lax = (row.forbidden[mode] for mode in Mode)
        assert strict >= middle >= lax


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("own", [True, False])
def test_unsafe_calls(mode: Mode, own: bool) -> None:
    expected = mode is Mode.GLOBAL or (own and mode is Mode.THREAD_LOCAL)
    assert forbids("unsafe", mode, own_thread=own) is expected


@pytest.mark.parametrize("mode", Mode)
def test_the_context_takes_the_mode_and_another_thread_feels_it(
    device: VirtualDevice, mode: Mode
) -> None:
    event = torch.cuda.Event()
    event.record()
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(4, device="cuda")
    raised: list[BaseException | None] = []

    def capture() -> None:
        with torch.cuda.graph(graph, capture_error_mode=mode.value):
            x.add_(1)
            raised.append(elsewhere(event.query))

    if mode is Mode.GLOBAL:
        with pytest.raises(torch.AcceleratorError, match="previous error"):
            capture()
        assert getattr(raised[0], "error_code", None) == 900
        assert [f.rule for f in device.findings] == ["other_thread", "after_invalidation"]
    else:
        capture()
        assert raised == [None]
        assert device.findings == ()
        graph.replay()
        assert x.tolist() == [1, 1, 1, 1]


@pytest.mark.usefixtures("device")
def test_kernels_of_another_thread_are_no_fault() -> None:
    graph, x = torch.cuda.CUDAGraph(), torch.zeros(4, device="cuda")
    with torch.cuda.graph(graph):
        assert elsewhere(lambda: x.add_(1)) is None


def test_an_unknown_mode_is_refused_in_torchs_words(device: VirtualDevice) -> None:
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        torch.cuda.CUDAGraph().capture_begin(capture_error_mode="lax")
    assert device.findings == ()


def _broken_capture(x: torch.Tensor) -> None:
    with (
        pytest.raises(torch.AcceleratorError, match="previous error"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
        pytest.raises(torch.AcceleratorError, match="not permitted"),
    ):
        x[0].item()


@pytest.mark.parametrize(
    "draw",
    [
        lambda _x: torch.rand(4, device="cuda"),
        lambda _x: torch.randperm(4, device="cuda"),
        torch.rand_like,
        lambda x: x.normal_(),
        torch.nn.functional.dropout,
        lambda x: torch.multinomial(x + 1, 2),
    ],
)
def test_after_a_broken_capture_old_torch_cannot_draw(
    device: VirtualDevice, draw: Callable[[torch.Tensor], object]
) -> None:
    x = torch.zeros(4, device="cuda")
    draw(x)
    _broken_capture(x)
    with pytest.raises(RuntimeError, match=OFFSET):
        draw(x)
    assert device.findings[-1].rule == "rng_outside_capture"
    assert not device.findings[-1].invalidates


@pytest.mark.parametrize(
    "quiet",
    [
        lambda _x: torch.rand(4),
        lambda x: torch.nn.functional.dropout(x, training=False),
        lambda _x: torch.zeros(0, device="cuda").normal_(),
        lambda _x: torch.rand(4, device="cuda", generator=torch.Generator(device="cuda")),
        lambda x: torch.nn.functional.scaled_dot_product_attention(
            x.view(1, 1, 2, 2), x.view(1, 1, 2, 2), x.view(1, 1, 2, 2)
        ),
        lambda x: torch.zeros_like(x).add_(1).sum(),
    ],
)
@pytest.mark.usefixtures("device")
def test_what_draws_nothing_from_it_goes_on(quiet: Callable[[torch.Tensor], object]) -> None:
    x = torch.zeros(4, device="cuda")
    _broken_capture(x)
    quiet(x)


@pytest.mark.usefixtures("device")
def test_after_a_good_capture_all_can_draw() -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.rand(4, device="cuda")
    torch.rand(4, device="cuda")
    graph.replay()


@pytest.mark.usefixtures("device")
def test_a_refused_operation_that_breaks_nothing_leaves_the_generator_free() -> None:
    x = torch.zeros(4, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()), pytest.raises(RuntimeError, match="pinned"):
        x.cpu()
    torch.rand(4, device="cuda")


def test_while_a_capture_is_on_no_other_stream_or_thread_may_draw(device: VirtualDevice) -> None:
    side, x = torch.cuda.Stream(), torch.zeros(4, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.normal_()
        assert OFFSET in str(elsewhere(lambda: torch.rand(4, device="cuda")))
        with torch.cuda.stream(side), pytest.raises(RuntimeError, match=OFFSET):
            x.normal_()
    assert [f.rule for f in device.findings] == ["rng_outside_capture"] * 2


def test_without_stopping_nothing_is_left_behind() -> None:
    with VirtualDevice(as_torch="2.11", stop_at_first=False) as device:
        x = torch.zeros(4, device="cuda")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x[0].item()
        torch.rand(4, device="cuda")
        assert [f.rule for f in device.findings] == ["host_read"]


@pytest.mark.skipif(not hasattr(torch.accelerator, "Graph"), reason="came with torch 2.13")
@pytest.mark.usefixtures("device")
def test_the_generic_graph_is_refused_for_cuda_as_torch_2_13_does() -> None:
    with pytest.raises(RuntimeError, match="not supported on device type: cuda"):
        torch.accelerator.Graph()
