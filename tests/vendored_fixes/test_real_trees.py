"""Released packages: not applicable or fixed as they are, repaired when made vulnerable."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from capdoctor.capture.scenarios import command
from capdoctor.model import FixStatus
from capdoctor.vendored_fixes.applying import apply
from capdoctor.vendored_fixes.catalogue import find_fix
from capdoctor.vendored_fixes.reverting import revert
from capdoctor.vendored_fixes.shop import check
from capdoctor.vendored_fixes.targets import find_target
from tests.helpers.package_wheels import unpack
from tests.helpers.vulnerable_vllm import take_guards_out
from tests.vendored_fixes.conftest import record_row, snapshot

FIX = find_fix("sparse-mla")
GROUP = "vllm/v1/attention/backends/mla/index_group.py"
RUNTIME = "vllm/v1/hisparse/runtime.py"
# What the fix looks at and its neighbours; bench/fixes.py takes the whole wheels.
PARTS = r"^vllm/((__init__|_version|forward_context)\.py|(compilation|config|v1)/)"
pytestmark = pytest.mark.network


@pytest.fixture
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return unpack("vllm", request.param, tmp_path / "site", PARTS)


def scenario(tree: Path, run_dir: Path, name: str = "sparse-mla") -> tuple[int, str]:
    """Exercise the tree's own files on the virtual device; give the exit code and the log."""
    run_dir.mkdir(exist_ok=True)
    line = command(name, tree, "cpu", None, run_dir)
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=200)
    return done.returncode, done.stdout + done.stderr


def functions(data: bytes) -> dict[str, str]:
    """Give each function's code without remarks and layout."""
    return {
        node.name: ast.unparse(node)
        for node in ast.walk(ast.parse(data))
        if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("tree", ["0.29.0"], indirect=True)
def test_a_release_before_the_index_group_is_not_concerned(tree: Path) -> None:
    result = check(FIX, find_target(str(tree), FIX))
    assert (result.status_before, result.version) == (FixStatus.NOT_APPLICABLE, "0.29.0")
    assert apply(FIX, find_target(str(tree), FIX)).changed_files == ()


@pytest.mark.parametrize("tree", ["0.30.0", "0.33.0"], indirect=True)
def test_a_release_with_the_guards_is_repaired_after_they_are_taken_out(
    tree: Path, tmp_path: Path
) -> None:
    target = find_target(str(tree), FIX)
    upstream = {name: (tree / name).read_bytes() for name in (GROUP, RUNTIME)}
    assert check(FIX, target).status_before is FixStatus.FIXED
    take_guards_out(tree)
    vulnerable = snapshot(tree)
    assert check(FIX, target).status_before is FixStatus.VULNERABLE
    code, log = scenario(tree, tmp_path / "before")
    assert code == 1
    assert "CUDA error: invalid argument" in log
    result = apply(FIX, target)
    assert (result.status_after, result.changed_files) == (FixStatus.FIXED, (RUNTIME, GROUP))
    code, log = scenario(tree, tmp_path / "after")
    assert code == 0, log
    ours, theirs = functions((tree / GROUP).read_bytes()), functions(upstream[GROUP])
    assert [name for name in theirs if ours[name] != theirs[name]] == ["set_logical_topk_ready"]
    assert functions((tree / RUNTIME).read_bytes()) == functions(upstream[RUNTIME])
    rows = next(tree.glob("*.dist-info/RECORD")).read_text().splitlines()
    assert record_row(tree, tree / GROUP) in rows
    revert(FIX, target)
    assert snapshot(tree) == vulnerable


def test_the_released_aiter_has_no_such_function(tmp_path: Path) -> None:
    tree = unpack("amd-aiter", "0.1.7.post2.dev18", tmp_path / "site")
    fix = find_fix("fold-indptr")
    result = check(fix, find_target(str(tree), fix))
    assert result.status_before is FixStatus.NOT_APPLICABLE
    assert result.version == "0.1.7.post2.dev18"
