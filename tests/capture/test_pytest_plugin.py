"""The plugin in real pytest runs, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PLUGIN = ["-p", "no:capdoctor", "-p", "capdoctor.capture.pytest_plugin"]
ROOT = Path(__file__).resolve().parents[2]

LIBRARY = """
import torch

def pad(x):
    return torch.nn.functional.pad(x.cumsum(0), (1, 0))

def setitem(x):
    y = torch.empty(len(x) + 1, device=x.device)
    y[0] = 0
    y[0] = 1
    return y

def fork(x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.add_(1)
    return x
"""
MARKED = """
import pytest
import torch

import lib

@pytest.fixture
def x():
    return torch.ones(4, device="cuda")

@pytest.mark.capture_legal
def test_legal(x):
    result = lib.pad(x)
    torch.cuda.synchronize()
    assert result.sum().item() == 10
    torch.testing.assert_close(result.cpu(), torch.tensor([0.0, 1, 2, 3, 4]))

@pytest.mark.capture_legal
def test_setitem(x):
    assert lib.setitem(x)[0].item() == 1

@pytest.mark.capture_legal
def test_fork(x):
    lib.fork(x)

@pytest.mark.capture_legal(own_lines=True)
def test_own_lines(x):
    x.sum().item()

@pytest.mark.capture_legal
def test_fails_by_itself(x):
    lib.setitem(x)
    assert x is None

@pytest.mark.capture_legal
@pytest.mark.xfail(strict=True)
def test_expected_to_be_illegal(x):
    lib.setitem(x)

def test_unmarked():
    assert not torch.cuda.is_initialized()
"""
SUITE = """
import unittest

import pytest
import torch

import lib

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
ONES = torch.ones(3, device="cuda")

def test_legal():
    assert torch.equal(lib.pad(ONES), torch.tensor([0.0, 1, 2, 3], device="cuda"))

@pytest.mark.parametrize("size", [1, 2])
def test_setitem(size):
    lib.setitem(torch.ones(size, device="cuda"))

class TestOld(unittest.TestCase):
    def test_setitem(self):
        lib.setitem(ONES)

def test_on_the_cpu():
    lib.setitem(torch.ones(3))
"""


def run(folder: Path, *options: str) -> tuple[str, int]:
    (folder / "lib.py").write_text(LIBRARY)
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "-q", "-rA"]
    done = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr, done.returncode


def outcomes(output: str) -> dict[str, str]:
    return {
        name: result
        for result, name in re.findall(r"^(\w+) test_\w+\.py::(\S+)", output, re.MULTILINE)
    }


def test_marked_tests_fail_for_what_the_code_under_test_does(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(MARKED)
    output, code = run(tmp_path)
    assert code == 1
    assert outcomes(output) == {
        "test_legal": "PASSED",
        "test_setitem": "FAILED",
        "test_fork": "FAILED",
        "test_own_lines": "FAILED",
        "test_fails_by_itself": "FAILED",
        "test_expected_to_be_illegal": "XFAIL",
        "test_unmarked": "PASSED",
    }
    assert "2 operations are illegal in a stream capture" in output
    assert re.search(r"lib\.py:9: in setitem: .*\n\s+would raise RuntimeError: Cannot copy", output)
    assert re.search(r"test_marked\.py:\d+: in test_fork: CUDAGraph\.capture_end", output)
    assert "unjoined work (904)" in output
    assert "assert x is None" in output, "a failure of the test's own stays as it is"


def test_a_whole_suite_is_checked_without_marks(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    output, code = run(tmp_path, "--capture-legal", "--capture-as-torch", "2.7")
    assert code == 1
    assert outcomes(output) == {
        "test_legal": "PASSED",
        "test_setitem[1]": "FAILED",
        "test_setitem[2]": "FAILED",
        "TestOld::test_setitem": "FAILED",
        "test_on_the_cpu": "PASSED",
    }


def test_a_wrong_torch_version_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text("def test_it(): pass\n")
    output, code = run(tmp_path, "--capture-legal", "--capture-as-torch", "newest")
    assert code == 4
    assert "--capture-as-torch" in output
    assert "INTERNALERROR" not in output


def test_unused_it_imports_neither_torch_nor_anything_slow(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(
        "import sys\ndef test_light():\n    assert 'torch' not in sys.modules\n"
        "    assert 'capdoctor.capture.device' not in sys.modules\n"
    )
    output, code = run(tmp_path)
    assert code == 0, output


def test_importing_it_costs_next_to_nothing() -> None:
    script = (
        "import pytest, time; start = time.perf_counter();"
        "import capdoctor.capture.pytest_plugin; print(time.perf_counter() - start)"
    )
    best = min(
        float(
            subprocess.run(
                [sys.executable, "-c", script],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(3)
    )
    assert best < 0.1
