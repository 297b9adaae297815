"""What the code does before and after: the crash, the early event and the order of the streams.

The rules of events are played by a few lines below: an event recorded while a segment is
captured belongs to that graph, and a wait on it outside raises, as a device does with error 1.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from capdoctor import vendored_fixes
from tests.helpers.fix_cases import Case, read_case

ROOM = Path(vendored_fixes.__file__).parent / "sparse_mla" / "cases"
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
RUNTIME = "vllm/v1/hisparse/runtime.py"
CONTEXT = "vllm/forward_context.py"


class InvalidArgument(RuntimeError):
    """CUDA error 1."""


@dataclass
class Device:
    """The streams' log, and whether a segment is captured right now."""

    log: list[tuple[str, ...]] = field(default_factory=list)
    capturing: bool = False
    current: list[Stream] = field(default_factory=list)


class Event:
    def __init__(self, name: str, device: Device) -> None:
        self.name, self.device = name, device
        self.state = "never"

    def wait(self) -> None:
        self.device.current[-1].wait_event(self)

    def record(self, stream: Stream) -> None:
        self.state = "captured" if self.device.capturing else "eager"
        self.device.log.append(("record", self.name, stream.name))


class Stream:
    def __init__(self, name: str, device: Device) -> None:
        self.name, self.device = name, device

    def wait_event(self, event: Event) -> None:
        if event.state == "captured" and not self.device.capturing:
            raise InvalidArgument(event.name)
        if event.state == "never":
            return  # as torch does: silently nothing
        self.device.log.append(("wait_event", self.name, event.name))

    def wait_stream(self, other: Stream) -> None:
        self.device.log.append(("wait_stream", self.name, other.name))

    def __enter__(self) -> None:  # noqa: D105
        self.device.current.append(self)
        self.device.log.append(("enter", self.name))

    def __exit__(self, *_: object) -> None:  # noqa: D105
        self.device.current.pop()
        self.device.log.append(("leave", self.name))


@dataclass
class Engine:
    """A tree's files, run with stand-ins for what they import."""

    device: Device
    group: Any
    runtime: Any
    context: types.ModuleType
    modes: type

    def forward(self, mode: str, *, breaks: bool) -> None:
        """Produce and convert once; ``breaks``: the conversion runs in an eager break."""
        current = self.context.ForwardContext(getattr(self.modes, mode))
        self.context._forward_context = current
        self.device.capturing = mode != "NONE"
        self.group.set_logical_topk_ready(0)
        self.device.capturing = mode != "NONE" and not breaks
        self.group._convert_once(0, None)
        self.device.capturing = False
        self.context._forward_context = None


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give a function that makes an engine of a tree."""
    names = [
        "torch",
        "vllm",
        "vllm.compilation",
        "vllm.compilation.breakable_cudagraph",
        "vllm.config",
        "vllm.logger",
        "vllm.utils",
        "vllm.utils.torch_utils",
        "vllm.forward_context",
        "vllm.v1",
        "vllm.v1.attention",
        "vllm.v1.attention.backends",
        "vllm.v1.attention.backends.mla",
        "vllm.v1.attention.backends.mla.sparse_utils",
        "vllm.v1.attention.backends.mla.index_group",
    ]

    def make(files: dict[str, bytes], *, has_indexer: bool = True) -> Engine:
        device = Device()
        modules = {name: types.ModuleType(name) for name in names}
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        device.current.append(Stream("compute", device))
        fakes: dict[str, dict[str, Any]] = {
            "torch": {"Stream": Stream, "Event": Event, "Tensor": object},
            "vllm": {"_custom_ops": None},
            "vllm.compilation.breakable_cudagraph": {"eager_break_during_capture": lambda f: f},
            "vllm.config": {"CUDAGraphMode": modes(), "VllmConfig": 0, "ParallelConfig": 0},
            "vllm.logger": {"init_logger": lambda name: name},
            "vllm.utils.torch_utils": {"current_stream": lambda: device.current[-1]},
            "vllm.v1.attention.backends.mla.sparse_utils": {
                "convert": lambda _: device.log.append(("convert",))
            },
        }
        for name, values in fakes.items():
            vars(modules[name]).update(values)
        context = run(files[CONTEXT], modules["vllm.forward_context"])
        group_module = run(files[GROUP], types.ModuleType("index_group"))
        group = group_module.SparseMLAIndexGroup(
            side_stream=Stream("side", device),
            logical_topk_ready=Event("logical", device),
            physical_topk_ready=Event("physical", device),
            has_indexer=has_indexer,
        )
        runtime = None
        if RUNTIME in files:
            runtime = run(files[RUNTIME], types.ModuleType("runtime")).HiSparseRuntime()
            shared = types.SimpleNamespace(
                logical_topk_ready=group.logical_topk_ready if has_indexer else None,
                copy_stream=Stream("copy", device),
            )
            runtime.index_group = shared
            runtime._resolve = lambda _: device.log.append(("resolve",))
        return Engine(device, group, runtime, context, fakes["vllm.config"]["CUDAGraphMode"])

    return make


def modes() -> type:
    import enum

    return enum.Enum("CUDAGraphMode", "NONE PIECEWISE FULL")


def run(data: bytes, module: types.ModuleType) -> Any:
    sys.modules[module.__name__] = module
    code = compile(data, module.__name__, "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102 - our own case file
    return module


def trees() -> list[Any]:
    """Give the cases whose methods have the names that the engine above calls."""
    names = [
        "both_files_no_helper",
        "early_return_record",
        "oldest_context",
        "mode_class_for_checkers_only",
        "mode_class_not_imported",
        "inverted_test",
        "useless_guard",
        "helper_for_checkers_only",
        "wait_inside_the_stream",
        "wait_through_a_helper",
        "record_through_a_helper",
        "eager_break_beside_a_plain_record",
    ]
    return [pytest.param(read_case(ROOM / f"{name}.txtar"), id=name) for name in names]


@pytest.mark.parametrize("case", trees())
def test_the_crash_is_there_before_and_gone_after(case: Case, build: Any) -> None:
    case = with_capture_check(case)
    with pytest.raises(InvalidArgument, match="logical"):
        build(case.before).forward("PIECEWISE", breaks=True)
    build({**case.before, **case.after}).forward("PIECEWISE", breaks=True)


@pytest.mark.parametrize("case", trees())
def test_in_piecewise_mode_the_side_stream_waits_for_the_compute_stream(
    case: Case, build: Any
) -> None:
    case = with_capture_check(case)
    engine = build({**case.before, **case.after})
    engine.forward("PIECEWISE", breaks=True)
    log = engine.device.log
    assert ("record", "logical", "compute") not in log
    wait, work = log.index(("wait_stream", "side", "compute")), log.index(("convert",))
    assert wait < work > log.index(("enter", "side"))
    assert log[-1] == ("wait_event", "compute", "physical"), "and compute waits for side"


@pytest.mark.parametrize("mode", ["FULL", "NONE"])
@pytest.mark.parametrize("has_indexer", [True, False])
@pytest.mark.parametrize("case", trees())
def test_in_the_other_modes_nothing_changes(
    case: Case, build: Any, mode: str, has_indexer: bool
) -> None:
    case = with_capture_check(case)
    old = build(case.before, has_indexer=has_indexer)
    old.forward(mode, breaks=False)
    new = build({**case.before, **case.after}, has_indexer=has_indexer)
    new.forward(mode, breaks=False)
    assert new.device.log == old.device.log
    expected = (
        ("wait_event", "side", "logical") if has_indexer else ("wait_stream", "side", "compute")
    )
    assert expected in new.device.log


@pytest.mark.parametrize("mode", ["PIECEWISE", "FULL", "NONE"])
def test_the_copy_stream_is_ordered_the_same_way(sparse_case: Case, build: Any, mode: str) -> None:
    engine = build({**sparse_case.before, **sparse_case.after})
    engine.context._forward_context = engine.context.ForwardContext(getattr(engine.modes, mode))
    engine.group.set_logical_topk_ready(0)
    engine.runtime._resolve_and_stage_group(shared_rows=slice(0))
    waits = [entry for entry in engine.device.log if entry[0].startswith("wait")]
    if mode == "PIECEWISE":
        assert waits == [("wait_stream", "copy", "compute")]
    else:
        assert waits == [("wait_event", "copy", "logical")]


def test_the_helper_answers_outside_a_forward_pass(sparse_case: Case, build: Any) -> None:
    engine = build({**sparse_case.before, **sparse_case.after})
    assert engine.context.in_piecewise_cudagraph() is False


@pytest.mark.parametrize("written", range(4))
def test_a_tree_that_is_half_written_crashes_as_before_but_never_races(
    sparse_case: Case, build: Any, written: int
) -> None:
    """Files reach the disk one by one; no state in between may wait on an unrecorded event."""
    files = dict(sparse_case.before)
    for name in list(sparse_case.after)[:written]:
        files[name] = sparse_case.after[name]
    if RUNTIME in list(sparse_case.after)[:written]:
        assert CONTEXT in list(sparse_case.after)[:written], "the helper first"
    engine = build(files)
    engine.context._forward_context = engine.context.ForwardContext(engine.modes.PIECEWISE)
    engine.device.capturing = True
    engine.group.set_logical_topk_ready(0)
    engine.device.capturing = False
    for consume in (
        lambda: engine.runtime._resolve_and_stage_group(shared_rows=slice(0)),
        lambda: engine.group._convert_once(0, None),
    ):
        engine.device.log.clear()
        try:
            consume()
        except InvalidArgument:
            continue
        assert any(e[0].startswith("wait") and e[1] in {"copy", "side"} for e in engine.device.log)


def test_a_wait_that_only_others_have_is_put_in(build: Any) -> None:
    case = read_case(ROOM / "stand_in_for_others.txtar")
    for files, waits in ((case.before, 0), ({**case.before, **case.after}, 1)):
        engine = build(files)
        engine.forward("PIECEWISE", breaks=True)
        assert engine.device.log.count(("wait_stream", "side", "compute")) == waits


def with_capture_check(case: Case) -> Case:
    """The useless guard asks torch.cuda, which is never capturing in an eager break."""
    ask = b"torch.cuda.is_current_stream_capturing()"
    swap = {name: data.replace(ask, b"False") for name, data in case.before.items()}
    after = {name: data.replace(ask, b"False") for name, data in case.after.items()}
    return Case(case.path, case.text, case.before_status, case.after_status, swap, after)
