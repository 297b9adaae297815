"""The case files on the virtual device: streams, events and captured segments as torch has them."""

from __future__ import annotations

import enum
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from capdoctor import vendored_fixes
from tests.helpers.fix_cases import Case, read_case

torch = pytest.importorskip("torch")
ROOM = Path(vendored_fixes.__file__).parent / "sparse_mla" / "cases"
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
CONTEXT = "vllm/forward_context.py"
CASES = [
    pytest.param(read_case(ROOM / f"{name}.txtar"), id=name)
    for name in ("both_files_no_helper", "early_return_record", "oldest_context", "inverted_test")
]
Mode = enum.Enum("Mode", "NONE PIECEWISE FULL")


def group_of(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Load the tree's group and forward context with stand-ins for the rest of vLLM."""
    names = [
        "vllm",
        "vllm.config",
        "vllm.logger",
        "vllm.utils",
        "vllm.utils.torch_utils",
        "vllm.forward_context",
        "vllm.v1.attention.backends.mla.sparse_utils",
    ]
    modules = {name: types.ModuleType(name) for name in names}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    vars(modules["vllm"])["_custom_ops"] = None
    vars(modules["vllm.config"]).update(CUDAGraphMode=Mode, VllmConfig=0, ParallelConfig=0)
    vars(modules["vllm.logger"])["init_logger"] = str
    vars(modules["vllm.utils.torch_utils"])["current_stream"] = torch.cuda.current_stream
    vars(modules["vllm.v1.attention.backends.mla.sparse_utils"])["convert"] = lambda x: x.add_(1)
    context = modules["vllm.forward_context"]
    run(files[CONTEXT], context)
    module = types.ModuleType("group_under_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    run(files[GROUP], module)
    group = vars(module)["SparseMLAIndexGroup"](
        side_stream=torch.cuda.Stream(),
        logical_topk_ready=torch.cuda.Event(),
        physical_topk_ready=torch.cuda.Event(),
        has_indexer=True,
    )
    return group, context


def run(data: bytes, module: types.ModuleType) -> None:
    code = compile(data, module.__name__, "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102 - our own case file


def forward(files: dict[str, bytes], mode: Mode, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Capture one forward pass: two segments around an eager break, or one whole graph."""
    from capdoctor.capture.device import VirtualDevice

    with VirtualDevice() as device:
        group, context = group_of(files, monkeypatch)
        vars(context)["_forward_context"] = vars(context)["ForwardContext"](mode)
        indices = torch.zeros(4, dtype=torch.int32, device="cuda")
        first = torch.cuda.CUDAGraph()
        if mode is Mode.PIECEWISE:
            with torch.cuda.graph(first):
                indices.fill_(6)
                group.set_logical_topk_ready(0)
            group._convert_once(0, indices)
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                indices.mul_(1)
        else:
            with torch.cuda.graph(first):
                indices.fill_(6)
                group.set_logical_topk_ready(0)
                group._convert_once(0, indices)
        return device


@pytest.mark.parametrize("case", CASES)
def test_piecewise_capture_fails_before_and_works_after(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="invalid argument"):
        forward(case.before, Mode.PIECEWISE, monkeypatch)
    device = forward({**case.before, **case.after}, Mode.PIECEWISE, monkeypatch)
    assert device.findings == ()


@pytest.mark.parametrize("case", CASES)
def test_a_full_capture_works_before_and_after(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for files in (case.before, {**case.before, **case.after}):
        assert forward(files, Mode.FULL, monkeypatch).findings == ()
