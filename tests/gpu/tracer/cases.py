"""What is run under the tracer beside the table: other threads, events outside, legal code.

Each case is a function of the names that the table's set-up code makes. ``named`` is a pattern of
the operation that must be named, None where nothing may be; ``kind`` the kind of the offence.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Names = dict[str, Any]


@dataclass(frozen=True)
class Case:
    run: Callable[[Names], object]
    named: str | None = None
    kind: str | None = None
    thread: str | None = None
    functions: tuple[str, ...] = ()
    seconds: int = 40
    needs_gpu: bool = False


@contextlib.contextmanager
def capturing(n: Names) -> Iterator[Any]:
    """Capture as an engine does: the end is called while an exception is on its way out."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(n["cur"]):
        graph.capture_begin()
        try:
            yield graph
        finally:
            torch.cuda.set_stream(n["cur"])
            graph.capture_end()


def in_other_thread(call: Callable[[Names], object]) -> Callable[[Names], object]:
    def run(n: Names) -> object:
        def upload() -> None:
            with contextlib.suppress(Exception):
                call(n)

        with capturing(n):
            n["x"].add_(1)
            thread = threading.Thread(target=upload, name="uploader")
            thread.start()
            thread.join()
            n["x"].add_(1)
        return None

    return run


def in_older_thread(call: Callable[[Names], object]) -> Callable[[Names], object]:
    """In a thread that ran before the capture began: only Python 3.12 tells of its exceptions."""

    def run(n: Names) -> object:
        go, done = threading.Event(), threading.Event()

        def upload() -> None:
            go.wait()
            with contextlib.suppress(Exception):
                call(n)
            done.set()

        thread = threading.Thread(target=upload, name="older")
        thread.start()
        try:
            with capturing(n):
                n["x"].add_(1)
                go.set()
                done.wait()
                n["x"].add_(1)
        finally:
            thread.join()
        return None

    return run


def cuda_malloc(_n: Names) -> object:
    from pathlib import Path

    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart" in line:
            runtime = ctypes.CDLL(line.split()[-1])
            return runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
    raise OSError("no libcudart")


def synchronize(_n: Names) -> object:
    import torch

    return torch.cuda.synchronize()


def allocate(_n: Names) -> object:
    import torch

    return torch.empty(256 << 20, device="cuda")


def copy_outside(n: Names) -> object:
    """The reported crash: recorded in a segment, waited for in the eager break behind it."""

    def record_ready() -> None:
        n["x"].add_(1)
        n["e"].record()

    def convert_once() -> None:
        n["S2"].wait_event(n["e"])

    with capturing(n):
        record_ready()
    convert_once()
    return None


def query_outside(n: Names) -> object:
    with capturing(n):
        n["x"].add_(1)
        n["e"].record()
    return n["e"].synchronize()


def fork_joined(n: Names) -> object:
    import torch

    with capturing(n):
        n["S2"].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(n["S2"]):
            n["x"].mul_(2)
        torch.cuda.current_stream().wait_stream(n["S2"])
        n["x"].add_(1)
    return n["x"].cpu().tolist()


def one_fork_left(n: Names) -> object:
    import torch

    def fork_first() -> None:
        n["S2"].wait_stream(torch.cuda.current_stream())

    def fork_second() -> None:
        n["S3"].wait_stream(torch.cuda.current_stream())

    n["S3"] = torch.cuda.Stream()
    z = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    with capturing(n):
        fork_first()
        fork_second()
        with torch.cuda.stream(n["S2"]):
            n["x"].mul_(2)
        with torch.cuda.stream(n["S3"]):
            z.mul_(2)
        torch.cuda.current_stream().wait_stream(n["S2"])
    return None


def harmless(n: Names) -> object:
    """A refused copy that the code catches and does without."""
    with capturing(n):
        try:
            n["x"].cpu()
        except RuntimeError:
            n["x"].add_(1)
    return None


def segments(n: Names) -> object:
    for _ in range(5):
        with capturing(n):
            n["x"].add_(1)
        n["x"].sum().item()
    return None


def many_segments(n: Names) -> object:
    """What tracing costs: 100 segments of 40 operations under some Python, as a model has it."""
    import torch

    model = torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(40)]).cuda()
    model(n["x"])
    torch.cuda.synchronize()
    for _ in range(100):
        with capturing(n):
            model(n["x"])
    return None


def in_inference_mode(n: Names) -> object:
    import torch

    with torch.inference_mode(), capturing(n):
        return n["s"].item()


NUMBERS = itertools.count()


def operator(n: Names, kernel: Callable[[Any], None]) -> Any:
    """An operator of a library whose kernel is Python, as engines register theirs."""
    import torch

    space = f"capdoctor_proof_{next(NUMBERS)}"
    library = torch.library.Library(space, "DEF")
    library.define("fold(Tensor(a!) x) -> ()")
    for key in ("CUDA", "CPU"):
        library.impl("fold", kernel, key)
    n["keep"] = library
    return getattr(torch.ops, space).fold


def in_custom_operator(n: Names) -> object:
    def fold(x: Any) -> None:
        x.mul_(2)
        x[0] = 0

    call = operator(n, fold)
    with capturing(n):
        call(n["x"])
    return None


def broken_inside_operator(n: Names, last: Callable[[Any], object]) -> object:
    """A segment ends and the next begins inside an operator's kernel, as piecewise captures do."""
    import torch

    graphs: list[Any] = []

    def begin() -> None:
        graphs.append(torch.cuda.CUDAGraph())
        graphs[-1].capture_begin()

    def attention(x: Any) -> None:
        graphs[-1].capture_end()
        x.sum().item()
        begin()

    call = operator(n, attention)
    with torch.cuda.stream(n["cur"]):
        begin()
        try:
            n["x"].add_(1)
            call(n["x"])
            last(n["x"])
        finally:
            graphs[-1].capture_end()
    return torch._C._len_torch_dispatch_stack()


def generic_event(n: Names) -> object:
    """The same as the reported crash with an event of ``torch`` instead of ``torch.cuda``."""
    import torch

    event = torch.Event("cuda")
    with capturing(n):
        n["x"].add_(1)
        event.record()
    n["S2"].wait_event(event)
    return None


class Group:
    """Holds what layers share, as an engine does: a generic stream and generic events."""

    def __init__(self) -> None:
        import torch

        self.side = torch.Stream(device="cuda")
        self.ready, self.other = torch.Event("cuda"), torch.Event("cuda")

    def record(self) -> None:
        self.ready.record()
        self.other.record()

    def convert(self) -> None:
        self.side.wait_event(self.ready)


def generic_stream(n: Names) -> object:
    """The reported crash as it was: neither the stream nor the event is of ``torch.cuda``."""
    group = Group()
    with capturing(n):
        n["x"].add_(1)
        group.record()
    group.convert()
    return None


def under_another_mode(n: Names) -> object:
    """Another dispatch mode, entered inside the capture and around it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            Counting.seen += 1
            return func(*args, **(kwargs or {}))

    with Counting(), capturing(n), Counting():
        n["x"].add_(1)
    return Counting.seen


def compiled(n: Names) -> object:
    import torch

    @torch.compile
    def step(x: Any) -> Any:
        return (x.sin() + 1).cos() * 2

    step(n["x"])
    torch.cuda.synchronize()
    with capturing(n) as graph:
        out = step(n["x"])
    graph.replay()
    torch.cuda.synchronize()
    return bool(torch.allclose(out, (n["x"].sin() + 1).cos() * 2))


CASES: dict[str, Case] = {
    "flagship": Case(
        copy_outside,
        r"Event\.wait|Stream\.wait_event",
        "event_outside",
        functions=("record_ready", "convert_once"),
    ),
    "synchronize_outside": Case(query_outside, r"Event\.synchronize", "event_outside"),
    "fork_joined": Case(fork_joined),
    "one_fork_left": Case(
        one_fork_left, r"Event\.wait|Stream\.wait_stream", "unjoined", functions=("fork_second",)
    ),
    "harmless_exception": Case(harmless),
    "segments": Case(segments),
    "many_segments": Case(many_segments),
    "inference_mode": Case(in_inference_mode, r"item|_local_scalar_dense", "invalidated"),
    "custom_operator": Case(in_custom_operator, r"copy_|fold", "raised", functions=("fold",)),
    "break_in_operator": Case(lambda n: broken_inside_operator(n, lambda x: x.mul_(2))),
    "copy_after_break": Case(
        lambda n: broken_inside_operator(n, lambda x: x.cpu()), r"_to_copy|Tensor\.cpu", "raised"
    ),
    "generic_event": Case(generic_event, r"wait", "event_outside"),
    "generic_stream": Case(
        generic_stream, r"Stream\.wait_event", "event_outside", functions=("record", "convert")
    ),
    "another_mode": Case(under_another_mode),
    "compiled": Case(compiled, seconds=50, needs_gpu=True),
    "thread_synchronize": Case(
        in_other_thread(synchronize), r"synchronize", "other_thread", "uploader"
    ),
    "older_thread": Case(
        in_older_thread(synchronize),
        r"torch\.cuda\.synchronize|CtxSynchronize",
        "other_thread",
        "older",
        needs_gpu=sys.version_info < (3, 12),
    ),
    "older_thread_item": Case(
        in_older_thread(lambda n: n["s"].item()),
        r"item|StreamSynchronize|Memcpy",
        "other_thread",
        "older",
        needs_gpu=True,
    ),
    "older_thread_event": Case(
        in_older_thread(lambda n: n["eo"].synchronize()), r"ync", "other_thread", "older"
    ),
    "thread_event": Case(
        in_other_thread(lambda n: n["eo"].synchronize()), r"ync", "other_thread", "uploader"
    ),
    "thread_query": Case(
        in_other_thread(lambda n: n["eo"].query()), r"uery", "other_thread", "uploader"
    ),
    "thread_item": Case(
        in_other_thread(lambda n: n["s"].item()), r".", "other_thread", "uploader", needs_gpu=True
    ),
    "thread_copy": Case(
        in_other_thread(lambda n: n["c"].to("cuda")), r".", "other_thread", "uploader"
    ),
    "thread_malloc": Case(
        in_other_thread(cuda_malloc), r"Malloc|MemAlloc", "other_thread", "uploader", needs_gpu=True
    ),
    # What torch's allocators do in other threads is measured, not known: nothing is demanded.
    "thread_empty": Case(
        in_other_thread(allocate), r".", "other_thread", "uploader", needs_gpu=True
    ),
    "thread_pin": Case(
        in_other_thread(lambda n: n["c"].pin_memory()), r".", "other_thread", "uploader"
    ),
}
