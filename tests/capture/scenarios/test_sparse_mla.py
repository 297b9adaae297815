"""Scenario sparse-mla: real releases of vLLM, with their guards, and with some taken out."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capdoctor.capture.scenarios.__main__ import main
from capdoctor.commands import apply_fix

pytest.importorskip("torch")

HELPERS = Path(__file__).resolve().parents[2] / "helpers"
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
RUNTIME = "vllm/v1/hisparse/runtime.py"
CONTEXT = "vllm/forward_context.py"
NEEDED = "|".join(re.escape(name) for name in (GROUP, RUNTIME, CONTEXT))
RELEASES = ("0.30.0", "0.31.0", "0.32.0", "0.33.0")
WAIT_ERROR = "AcceleratorError: CUDA error: invalid argument"

Run = Callable[[Path], tuple[int, str, str]]


def helper(name: str) -> object:
    spec = importlib.util.spec_from_file_location(name, HELPERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def release(version: str, into: Path) -> Path:
    wheels = helper("package_wheels")
    return wheels.unpack("vllm", version, into, NEEDED)  # type: ignore[attr-defined,no-any-return]


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def go(source: Path) -> tuple[int, str, str]:
        arguments = ["sparse-mla", "--source", str(source), "--run-dir", str(tmp_path)]
        code = main([*arguments, "--as-torch", "2.11"])
        reason = json.loads((tmp_path / "scenario.json").read_text())["reason"]
        return code, capsys.readouterr().out, reason

    return go


@pytest.mark.network
@pytest.mark.parametrize("version", RELEASES)
def test_a_release_passes_and_crashes_at_the_wait_without_its_guards(
    version: str, tmp_path: Path, run: Run
) -> None:
    source = release(version, tmp_path / "src")
    code, log, reason = run(source)
    assert (code, reason) == (0, "")
    assert log.count("Graph capturing finished") == 2
    helper("vulnerable_vllm").take_guards_out(source)  # type: ignore[attr-defined]
    code, log, reason = run(source)
    assert (code, reason) == (1, WAIT_ERROR)
    assert "Available KV cache memory" not in log, "it dies while memory is profiled"
    first = log.partition("During handling of the above exception")[0]
    frames = [line for line in first.splitlines() if 'File "' in line]
    assert frames[-1].endswith("in _convert_once")
    assert f"{GROUP}" in frames[-1]
    assert "self.side_stream.wait_event(self.logical_topk_ready)" in log
    fixed = CliRunner().invoke(apply_fix.app, ["sparse-mla", "--target", str(source)])
    assert fixed.exit_code == 0, fixed.output
    code, _, reason = run(source)
    assert (code, reason) == (0, "")


@pytest.mark.network
def test_a_release_before_the_index_group_is_not_judged(tmp_path: Path, run: Run) -> None:
    code, _, reason = run(release("0.29.0", tmp_path / "src"))
    assert code == 3
    assert reason.startswith("not applicable: this tree has no vllm/v1/attention/backends/mla/")


FULL_GUARD = "        if in_piecewise_cudagraph():\n            return\n        self.logical"


@pytest.mark.network
@pytest.mark.parametrize(
    ("changes", "crash"),
    [
        ({GROUP: [(FULL_GUARD, "        self.logical")]}, ""),
        (
            {GROUP: [("self.has_indexer and not in_piecewise_cudagraph()", "self.has_indexer")]},
            "OrderViolation",
        ),
        ({GROUP: [(" and not in_piecewise_cudagraph()", " and False")]}, ""),
        (
            {GROUP: [("self.side_stream.wait_stream(compute_stream)", "pass")]},
            "OrderViolation",
        ),
        (
            {GROUP: [("compute_stream.wait_event(self.physical_topk_ready)", "pass")]},
            "OrderViolation",
        ),
        ({RUNTIME: [("is not None and not in_piecewise_cudagraph()", "is not None")]}, "Order"),
        (
            {
                GROUP: [(FULL_GUARD, "        self.logical")],
                RUNTIME: [("is not None and not in_piecewise_cudagraph()", "is not None")],
            },
            WAIT_ERROR,
        ),
        ({CONTEXT: [("== CUDAGraphMode.PIECEWISE", "== CUDAGraphMode.FULL")]}, WAIT_ERROR),
        ({CONTEXT: [("def in_piecewise_cudagraph", "def in_another")]}, "ImportError"),
    ],
    ids=[
        "the record alone is harmless",
        "waiting for an event never recorded is a race",
        "always waiting for the stream is right",
        "not waiting at all is a race",
        "not waiting for the result is a race",
        "hisparse waits for a stale event",
        "hisparse waits for a captured event",
        "the helper is wrong",
        "the helper is missing",
    ],
)
def test_each_guard_is_exercised(
    changes: dict[str, list[tuple[str, str]]], crash: str, tmp_path: Path, run: Run
) -> None:
    source = release("0.33.0", tmp_path / "src")
    for file, edits in changes.items():
        edit(source / file, *edits)
    code, _, reason = run(source)
    assert code == (1 if crash else 0)
    assert reason.startswith(crash)


@pytest.mark.parametrize(
    ("stated", "line"),
    [
        ("__version__ = version = '0.33.1.dev2+g1'\n", "a V1 LLM engine (v0.33.1.dev2+g1) with"),
        ("version: str\n", "Initializing an LLM engine with config"),
        (None, "Initializing an LLM engine with config"),
    ],
)
def test_the_log_states_the_trees_own_version(
    stated: str | None, line: str, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "src" / "vllm").mkdir(parents=True)
    if stated is not None:
        (tmp_path / "src" / "vllm" / "_version.py").write_text(stated)
    assert line in run(tmp_path / "src")[1]


# Shapes that forks gave the file, in code of our own.
FORK_HEAD = """
from __future__ import annotations
from dataclasses import dataclass
import torch
from vllm.compilation.breakable_cudagraph import eager_break_during_capture
from vllm.utils.torch_utils import current_stream
from vllm.v1.attention.backends.mla.sparse_utils import triton_convert_req_index_to_global_index

SHARED = None

@dataclass
class SparseMLAIndexGroup:
    logical: torch.Tensor
    physical: torch.Tensor
    side_stream: torch.Stream
    ready: torch.Event
    converted: torch.Event
    layers: int = 0
"""
FORK_RECORD = """
    def set_logical_topk_ready(self, layer_index):
        if layer_index == 0:
            self._record()

    @eager_break_during_capture
    def _record(self):
        self.ready.record(current_stream())
"""
FORK_RECORD_IN_SEGMENT = FORK_RECORD.replace("    @eager_break_during_capture\n", "")
FORK_CONVERT = """
    def convert_logical_to_physical_topk(
        self, layer_index, logical_topk_indices, attn_metadata, *, return_valid_counts, extra=None
    ):
        compute = current_stream()
        if layer_index == 0:
            self.side_stream.wait_event(self.ready)
            with self.side_stream:
                triton_convert_req_index_to_global_index(
                    attn_metadata.req_id_per_token, attn_metadata.block_table,
                    logical_topk_indices, BLOCK_SIZE=attn_metadata.block_size, out=self.physical,
                )
                self.converted.record(self.side_stream)
        compute.wait_event(self.converted)
        return self.physical
"""
FORK_BUILDER = """
class SparseMLAIndexGroupBuilder:
    def __init__(self, logical_topk_indices):
        self.logical = logical_topk_indices
        self.side_stream = torch.Stream(device=logical_topk_indices.device)
        self.group = None

    def register_layer(self, is_index_producing_layer):
        if is_index_producing_layer:
            self.group = SparseMLAIndexGroup(
                self.logical, torch.empty_like(self.logical), self.side_stream,
                torch.Event(), torch.Event(),
            )
        index = self.group.layers
        self.group.layers += 1
        return self.group, index
"""


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (FORK_RECORD + FORK_CONVERT, (0, "")),
        (FORK_RECORD_IN_SEGMENT + FORK_CONVERT, (1, WAIT_ERROR)),
        ("", (3, "not applicable: this index_group.py does not convert indices by itself")),
        (
            FORK_RECORD,
            (3, "not applicable: this index_group.py does not convert indices by itself"),
        ),
        (FORK_CONVERT, (3, "not applicable: this index_group.py records no event")),
        (
            FORK_RECORD + FORK_CONVERT.replace("self.ready)", "self.never_made)"),
            (3, "this tree does not fit the scenario: AttributeError"),
        ),
    ],
    ids=["eager record", "record in segment", "builder only", "no convert", "no record", "drift"],
)
def test_other_shapes_of_the_file(
    body: str, answer: tuple[int, str], tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "src" / GROUP
    path.parent.mkdir(parents=True)
    path.write_text(FORK_HEAD + body + FORK_BUILDER)
    code, _, reason = run(tmp_path / "src")
    assert code == answer[0]
    assert reason.startswith(answer[1])
