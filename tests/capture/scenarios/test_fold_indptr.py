"""Scenario fold-indptr on small aiter trees of our own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from capdoctor.capture.scenarios import SETUP_FAILED, command
from capdoctor.capture.scenarios.__main__ import main

pytest.importorskip("torch")

Run = Callable[[Path], tuple[int, str, str]]

HEAD = """
import torch
import triton
import triton.language as tl
from aiter import dtypes
from .jit.core import compile_ops

@triton.jit
def _kernel(x, BLOCK: tl.constexpr):
    pass

@compile_ops("module_mla")
def mla_decode_stage1_asm_fwd(q: torch.Tensor) -> None: ...

def _fold_seqlen_indptr(indptr, fold_factor):
    lens = (indptr[1:] - indptr[:-1]).repeat_interleave(fold_factor)
"""
BUGGY = """
    out = torch.empty(lens.numel() + 1, dtype=indptr.dtype, device=indptr.device)
    out[0] = 0
    out[1:] = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return out
"""
FIXED = """
    total = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return torch.nn.functional.pad(total, (1, 0), value=0)
"""
ZEROED = """
    out = torch.empty(lens.numel() + 1, dtype=indptr.dtype, device=indptr.device)
    out[:1].zero_()
    out[1:] = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return out
"""
FLOAT_ZERO = BUGGY.replace("out[0] = 0", "out[0] = 0.0")
TENSOR_FACTOR = FIXED.replace(
    "total =", "torch.tensor([fold_factor], device=indptr.device)\n    total ="
)
HOST_READ = FIXED.replace("total =", "biggest = int(lens.max())\n    total =")
WRONG = FIXED.replace("(1, 0)", "(0, 1)")
WRONG_TYPE = FIXED.replace(".to(indptr.dtype)", ".to(torch.int64)")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the scenario's child in this process: exit code, log, reason."""

    def go(source: Path) -> tuple[int, str, str]:
        code = main(["fold-indptr", "--source", str(source), "--run-dir", str(tmp_path)])
        reason = json.loads((tmp_path / "scenario.json").read_text())["reason"]
        return code, capsys.readouterr().out, reason

    return go


def tree(folder: Path, body: str, file: str = "mla.py") -> Path:
    path = folder / "aiter" / file
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + body)
    return folder


@pytest.mark.parametrize("body", [FIXED, ZEROED], ids=["pad", "zero_"])
def test_a_repaired_function_passes(body: str, tmp_path: Path, run: Run) -> None:
    code, log, _ = run(tree(tmp_path / "src", body))
    assert code == 0
    assert "init engine (profile, create kv cache, warmup model) took" in log


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        (BUGGY, "out[0] = 0", "Cannot copy between CPU and CUDA tensors"),
        (FLOAT_ZERO, "out[0] = 0.0", "Cannot copy between CPU and CUDA tensors"),
        (TENSOR_FACTOR, "torch.tensor([fold_factor]", "Cannot copy between CPU and CUDA"),
        (HOST_READ, "int(lens.max())", "operation not permitted when stream is capturing"),
    ],
    ids=["setitem", "float setitem", "host list", "host read"],
)
def test_an_illegal_operation_crashes_at_the_trees_own_line(
    body: str, line: str, message: str, tmp_path: Path, run: Run
) -> None:
    code, log, reason = run(tree(tmp_path / "src", body))
    assert code == 1
    assert message in reason
    first = log.partition("During handling of the above exception")[0]
    last = [text for text in first.splitlines() if 'File "' in text][-1]
    assert "aiter/mla.py" in last
    assert last.endswith("in _fold_seqlen_indptr")
    assert line in log


@pytest.mark.parametrize("body", [WRONG, WRONG_TYPE], ids=["values", "dtype"])
def test_a_wrong_result_is_a_failure_too(body: str, tmp_path: Path, run: Run) -> None:
    code, _, reason = run(tree(tmp_path / "src", body))
    assert (code, "WrongResult" in reason) == (1, True)


def test_the_function_may_live_in_another_file(tmp_path: Path, run: Run) -> None:
    source = tree(tmp_path / "src", BUGGY, "ops/mla_fold.py")
    code, log, _ = run(source)
    assert code == 1
    assert "aiter/ops/mla_fold.py" in log


def test_the_package_folder_itself_may_be_given(tmp_path: Path, run: Run) -> None:
    source = tree(tmp_path / "src", BUGGY)
    assert run(source / "aiter")[0] == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("def mla_decode_fwd(q):\n    return q\n", "has no _fold_seqlen_indptr"),
        ("def _fold_seqlen_indptr(a, b, c, d):\n    return a\n", "not the function"),
        ("def _fold_seqlen_indptr(:\n", "not Python"),
    ],
    ids=["absent", "other arguments", "broken file"],
)
def test_a_tree_without_the_function_is_not_judged(
    body: str, sentence: str, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "src" / "aiter" / "mla.py"
    path.parent.mkdir(parents=True)
    path.write_text(body)
    code, _, reason = run(tmp_path / "src")
    assert code == 3
    assert sentence in reason


def test_a_tree_of_something_else_is_not_judged(tmp_path: Path, run: Run) -> None:
    (tmp_path / "src").mkdir()
    code, log, reason = run(tmp_path / "src")
    assert code == 3
    assert reason.startswith("not applicable:")
    assert log.splitlines()[-1] == SETUP_FAILED + reason


def test_the_engines_know_the_same_last_line() -> None:
    from capdoctor.engines import embedded

    assert embedded.SETUP_FAILED == SETUP_FAILED


def test_the_command_line_runs_it_in_a_child(tmp_path: Path) -> None:
    source = tree(tmp_path / "src", BUGGY)
    line = command("fold-indptr", source, "cpu", "2.11", tmp_path)
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "EngineCore failed to start." in done.stdout


def test_an_older_torch_has_other_words_for_it(tmp_path: Path) -> None:
    source = tree(tmp_path / "src", HOST_READ)
    arguments = ["fold-indptr", "--source", str(source), "--run-dir", str(tmp_path)]
    assert main([*arguments, "--as-torch", "2.7"]) == 1
    reason = json.loads((tmp_path / "scenario.json").read_text())["reason"]
    assert reason.startswith("RuntimeError: CUDA error: operation not permitted")
