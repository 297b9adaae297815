"""The virtual device as a whole: values flow, nothing leaks, threads and copies are followed."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import threading
from typing import Any

import pytest
import torch

from capdoctor.capture.device import VirtualDevice
from capdoctor.errors import CannotDo

WATCHED = (
    (torch.cuda, ("Stream", "Event", "CUDAGraph", "synchronize", "is_available", "current_stream")),
    (torch, ("Stream", "Event", "Generator", "load")),
    (torch.cuda.graphs, ("CUDAGraph", "graph_pool_handle")),
    (torch.Tensor, ("__reduce_ex__", "record_stream")),
    (torch.UntypedStorage, ("cpu", "clone")),
    (threading.Thread, ("_bootstrap_inner",)),
)


def _names() -> list[Any]:
    return [getattr(owner, name) for owner, names in WATCHED for name in names]


def _modes() -> tuple[int, int]:
    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


def test_nothing_stays_replaced() -> None:
    before, modes = _names(), _modes()
    with VirtualDevice():
        assert _names() != before
    assert _names() == before
    assert _modes() == modes
    assert not hasattr(torch._C, "_cuda_getCurrentRawStream") or torch.version.cuda


def test_nothing_stays_replaced_after_an_error() -> None:
    before, modes = _names(), _modes()
    with pytest.raises(ZeroDivisionError), VirtualDevice(), torch.inference_mode():
        torch.zeros(1 // 0, device="cuda")
    assert _names() == before
    assert _modes() == modes


def test_two_devices_at_once_are_refused() -> None:
    with VirtualDevice():
        with pytest.raises(CannotDo, match="already on"), VirtualDevice():
            pass
        assert torch.zeros(1, device="cuda").is_cuda
    with VirtualDevice():
        assert torch.cuda.is_available()


def test_names_bound_before_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    module = types.ModuleType("a_users_module")
    module.Stream = torch.cuda.Stream  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_users_module", module)
    real = torch.cuda.Stream
    with VirtualDevice():
        assert module.Stream is torch.cuda.Stream
        assert module.Stream is not real
    assert module.Stream is real


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(3, device="cuda"),
        lambda: torch.zeros(3, device=torch.device("cuda", 0)),
        lambda: torch.zeros(3, device="cuda:0"),
        lambda: torch.zeros(3, device=0),
        lambda: torch.zeros(3).cuda(),
        lambda: torch.zeros(3).to("cuda"),
        lambda: torch.zeros(3).to(torch.ones(1, device="cuda")),
        lambda: torch.tensor([1, 2], device="cuda"),
        lambda: torch.zeros(3, device="cuda")[1:],
        lambda: torch.zeros(3, device="cuda").view(3, 1).t(),
        lambda: torch.zeros(3, device="cuda").data,
        lambda: torch.zeros(3, device="cuda").detach(),
        lambda: torch.ones_like(torch.zeros(3, device="cuda")),
        lambda: torch.zeros(3, device="cuda").new_full((2,), 1.0),
        lambda: torch.zeros(3).new_zeros(2, device="cuda"),
        lambda: torch.nn.Parameter(torch.zeros(3, device="cuda")),
        lambda: torch.nn.Linear(2, 2).cuda().weight,
        lambda: torch.nn.Linear(2, 2, device="cuda").bias,
        lambda: torch.nn.BatchNorm1d(2).to("cuda").running_mean,
        lambda: torch.zeros(3, device="cuda") + torch.tensor(1.0),
        lambda: torch.tensor(1.0) + torch.zeros(3, device="cuda"),
        lambda: torch.zeros(3, device="cuda").max(),
        lambda: torch.zeros(3, device="cuda").topk(2).indices,
        lambda: torch.nn.functional.dropout(torch.zeros(3, device="cuda")),
        lambda: torch.where(torch.zeros(3, device="cuda") > 0, 1.0, 0.0),
        lambda: torch.linalg.inv(torch.eye(2, device="cuda")),
        lambda: copy.deepcopy(torch.zeros(3, device="cuda")),
        lambda: torch.zeros(4, device="cuda").split(2)[1],
        lambda: torch.rand(2, device="cuda", generator=torch.Generator("cuda")),
        lambda: torch.cuda.FloatTensor(2),
        lambda: torch.einsum("i,i->i", *[torch.ones(2, device="cuda")] * 2),
        lambda: torch.vmap(lambda v: v * 2)(torch.ones(2, device="cuda")),
    ],
)
def test_what_comes_of_device_tensors_is_on_the_device(make: Any) -> None:
    with VirtualDevice():
        tensor = make()
        assert tensor.is_cuda
        assert tensor.device == torch.device("cuda", 0)
        assert tensor.get_device() == 0
        assert not tensor.is_cpu
        assert "cuda" in repr(tensor)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(3),
        lambda: torch.zeros(3, device="cuda").cpu(),
        lambda: torch.zeros(3, device="cuda").to("cpu"),
        lambda: torch.empty_like(torch.zeros(3, device="cuda"), device="cpu"),
        lambda: torch.zeros(3, device="cuda").new_zeros(2, device="cpu"),
        lambda: torch.tensor(torch.zeros(3, device="cuda").tolist()),
        lambda: torch.nn.Linear(2, 2, device="cuda").cpu().weight,
        lambda: torch.zeros(3).pin_memory(),
        lambda: torch.cuda.get_rng_state().clone(),
    ],
)
def test_what_is_brought_back_is_on_the_host(make: Any) -> None:
    with VirtualDevice():
        tensor = make()
        assert not tensor.is_cuda
        assert tensor.device.type == "cpu"


def test_default_devices_are_followed() -> None:
    with VirtualDevice():
        with torch.device("cuda"):
            assert torch.zeros(2).is_cuda
            assert torch.tensor([1.0]).is_cuda
        assert not torch.zeros(2).is_cuda
        torch.set_default_device("cuda")
        try:
            assert torch.ones(2).is_cuda
            assert torch.nn.Linear(2, 2).weight.is_cuda
        finally:
            torch.set_default_device(None)


def test_values_are_real() -> None:
    with VirtualDevice():
        x = torch.arange(6, device="cuda").view(2, 3)
        assert int(x.sum()) == 15
        assert x.nonzero().shape == (5, 2)
        assert x.cpu().numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_gradients_flow_and_stay_on_the_device() -> None:
    with VirtualDevice():
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(2, 3, device="cuda")).sum().backward()
        assert all(p.grad is not None and p.grad.is_cuda for p in model.parameters())
        optimizer.step()


def test_a_graph_records_and_replays_on_new_values() -> None:
    with VirtualDevice():
        static = torch.zeros(4, device="cuda")
        total = torch.zeros(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = static * 2
            total.add_(doubled)
        assert total.tolist() == [0.0] * 4  # a capture runs nothing
        static.fill_(3.0)
        graph.replay()
        graph.replay()
        assert doubled.tolist() == [6.0] * 4
        assert total.tolist() == [12.0] * 4


def test_a_replay_copies_from_and_to_pinned_memory() -> None:
    with VirtualDevice():
        source = torch.zeros(2).pin_memory()
        target = torch.zeros(2).pin_memory()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            there = source.to("cuda", non_blocking=True)
            target.copy_(there + 1, non_blocking=True)
        source.fill_(5.0)
        graph.replay()
        assert target.tolist() == [6.0, 6.0]


def test_random_numbers_differ_from_replay_to_replay() -> None:
    with VirtualDevice():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            noise = torch.rand(8, device="cuda")
        graph.replay()
        first = noise.tolist()
        graph.replay()
        assert noise.tolist() != first


def test_a_graph_under_inference_mode_replays() -> None:
    with VirtualDevice(), torch.inference_mode():
        layer = torch.nn.Linear(4, 4, device="cuda")
        static = torch.zeros(2, 4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = layer(static).relu()
        static.fill_(1.0)
        graph.replay()
        assert torch.equal(out, layer(static).relu())


def test_make_graphed_callables_works() -> None:
    with VirtualDevice():
        layer = torch.nn.Linear(3, 3).cuda()
        sample = torch.randn(2, 3, device="cuda", requires_grad=True)
        graphed = torch.cuda.make_graphed_callables(layer, (sample,))
        given = torch.randn(2, 3, device="cuda")
        expected = torch.nn.functional.linear(given, layer.weight, layer.bias)
        assert torch.allclose(graphed(given), expected)


def test_two_captures_at_once_stay_apart() -> None:
    with VirtualDevice(as_torch="2.11"):
        one, two = torch.cuda.Stream(), torch.cuda.Stream()
        first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        x = torch.zeros(1, device="cuda")
        with torch.cuda.stream(one):
            first.capture_begin(capture_error_mode="relaxed")
            x.add_(1)
        with torch.cuda.stream(two):
            second.capture_begin(capture_error_mode="relaxed")
            x.add_(10)
            second.capture_end()
        with torch.cuda.stream(one):
            first.capture_end()
        first.replay()
        second.replay()
        assert x.item() == 11


def test_threads_have_their_own_current_stream_and_see_the_device() -> None:
    seen: dict[str, Any] = {}

    def work() -> None:
        seen["stream"] = torch.cuda.current_stream()
        seen["tensor"] = torch.zeros(2, device="cuda")

    with VirtualDevice():
        mine = torch.cuda.Stream()
        with torch.cuda.stream(mine):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            assert torch.cuda.current_stream() == mine
        assert seen["stream"] == torch.cuda.default_stream()
        assert seen["tensor"].is_cuda


def test_a_thread_that_outlives_the_device_is_left_alone() -> None:
    go, done = threading.Event(), threading.Event()
    out: list[bool] = []

    def work() -> None:
        go.wait(10)
        out.append(torch.zeros(2).is_cuda)
        done.set()

    with VirtualDevice():
        threading.Thread(target=work).start()
    go.set()
    assert done.wait(10)
    assert out == [False]


def test_memory_is_counted_and_given_back() -> None:
    with VirtualDevice(memory_budget=1 << 20):
        assert torch.cuda.mem_get_info() == (1 << 20, 1 << 20)
        x = torch.zeros(1 << 16, device="cuda")
        assert torch.cuda.memory_allocated() == 1 << 18
        view = x[10:]
        del x
        assert torch.cuda.memory_allocated() == 1 << 18
        del view
        assert torch.cuda.memory_allocated() == 0
        assert torch.cuda.max_memory_allocated() == 1 << 18


@pytest.mark.parametrize("make", ["torch.empty(1 << 40, device='cuda')", "x.repeat(1 << 10)"])
def test_too_much_memory_is_refused_in_torchs_words(make: str) -> None:
    with VirtualDevice(memory_budget=1 << 20):
        x = torch.zeros(1 << 12, device="cuda")
        with pytest.raises(
            torch.OutOfMemoryError, match=r"^CUDA out of memory\. Tried to allocate"
        ):
            eval(make, {"torch": torch, "x": x})  # noqa: S307
        assert torch.cuda.memory_allocated() == 1 << 14
        assert torch.zeros(8, device="cuda").is_cuda


def test_pickles_go_by_the_host() -> None:
    with VirtualDevice():
        x = torch.arange(3.0, device="cuda")
        assert pickle.loads(pickle.dumps(x)).tolist() == [0.0, 1.0, 2.0]  # noqa: S301
        file = io.BytesIO()
        torch.save({"w": x}, file)
        file.seek(0)
        assert torch.load(file, map_location="cuda")["w"].is_cuda


def test_numpy_cannot_see_device_memory() -> None:
    with VirtualDevice(), pytest.raises(TypeError, match="can't convert cuda:0 device type tensor"):
        torch.zeros(2, device="cuda").numpy()


def test_mixing_devices_is_refused_outside_a_capture_too() -> None:
    with VirtualDevice(), pytest.raises(RuntimeError, match="found at least two devices, cuda:0"):
        torch.zeros(2, device="cuda") + torch.zeros(2)


def test_another_gpu_does_not_exist() -> None:
    with VirtualDevice(), pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(2, device="cuda:1")


def test_timing_events_measure_something() -> None:
    with VirtualDevice():
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        with pytest.raises(ValueError, match="must be recorded"):
            start.elapsed_time(end)
        start.record()
        end.record()
        assert start.elapsed_time(end) >= 0
        with pytest.raises(ValueError, match="enable_timing=True"):
            start.elapsed_time(torch.cuda.Event())


def test_generic_streams_and_events_are_virtual_too() -> None:
    with VirtualDevice():
        stream = torch.Stream(device="cuda")
        event = torch.Event(device="cuda")
        event.record(stream)
        assert isinstance(stream, torch.Stream)
        assert isinstance(torch.cuda.current_stream(), torch.Stream)
        with stream:
            assert torch.accelerator.current_stream() == stream
        torch.accelerator.synchronize()
        assert isinstance(torch.Generator(), torch.Generator)
        assert torch.Generator("cuda").device.type == "cuda"


def test_seeding_makes_numbers_repeat() -> None:
    with VirtualDevice():
        torch.manual_seed(3)
        first = torch.rand(4, device="cuda").tolist()
        torch.manual_seed(3)
        assert torch.rand(4, device="cuda").tolist() == first


def test_dropping_a_graph_breaks_a_running_capture_but_collecting_garbage_does_not() -> None:
    def capture(inside: Any) -> str:
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            graph.capture_begin()
            inside()
            state = device.session.machine.status(stream.cuda_stream)
            if state.value == "active":
                graph.capture_end()
            else:
                with pytest.raises(RuntimeError, match="previous error during capture"):
                    graph.capture_end()
        return str(state.value)

    with VirtualDevice() as device:
        held = [torch.cuda.CUDAGraph()]
        with torch.cuda.graph(held[0]):
            torch.zeros(1, device="cuda")
        assert capture(held.clear) == "invalidated"
        cycle: list[Any] = [torch.cuda.CUDAGraph()]
        with torch.cuda.graph(cycle[0]):
            torch.zeros(1, device="cuda")
        cycle.append(cycle)
        del cycle
        assert capture(gc.collect) == "active"


def test_compiled_code_runs_as_it_is_written() -> None:
    def store(x: torch.Tensor) -> torch.Tensor:
        x[0] = 1.0
        return x

    before = torch.compile(store, backend="eager")
    with VirtualDevice(as_torch="2.11", stop_at_first=False) as device:
        x = torch.zeros(4, device="cuda")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            before(x)
            torch.compile(store)(x)
            torch.compile(dynamic=False)(store)(x)
        assert [f.function for f in device.findings] == ["store"] * 3


def test_an_autograd_function_is_followed() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2 + torch.zeros(4, device="cuda")

        @staticmethod
        def backward(_ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * torch.full((4,), 2.0, device=grad.device)

    with VirtualDevice():
        p = torch.nn.Parameter(torch.ones(4, device="cuda"))
        Twice.apply(p).sum().backward()
        assert p.grad is not None
        assert p.grad.tolist() == [2.0] * 4
        assert p.grad.is_cuda
