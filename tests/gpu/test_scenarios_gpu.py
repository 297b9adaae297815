"""Scenarios give the same verdict on a real GPU as on the virtual device."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from capdoctor.capture.scenarios import command

pytestmark = pytest.mark.gpu

SCENARIOS = Path(__file__).resolve().parents[1] / "capture" / "scenarios"
# Folders with real trees, colon-separated, for a machine that has them: each is run as it is.
TREES = [Path(part) for part in os.environ.get("CAPDOCTOR_TEST_TREES", "").split(":") if part]


def cases_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCENARIOS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def verdict(name: str, source: Path, device: str, run_dir: Path) -> tuple[int, str]:
    run_dir.mkdir()
    line = command(name, source, device, None, run_dir)
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, json.loads((run_dir / "scenario.json").read_text())["reason"]


def agrees(name: str, source: Path, tmp_path: Path) -> tuple[int, str]:
    virtual = verdict(name, source, "cpu", tmp_path / "virtual")
    real = verdict(name, source, "cuda", tmp_path / "real")
    assert real == virtual
    return real


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("FIXED", 0),
        ("ZEROED", 0),
        ("BUGGY", 1),
        ("FLOAT_ZERO", 1),
        ("TENSOR_FACTOR", 1),
        ("HOST_READ", 1),
        ("WRONG", 1),
        ("WRONG_TYPE", 1),
    ],
)
def test_fold_indptr(body: str, code: int, tmp_path: Path) -> None:
    cases = cases_of("test_fold_indptr")
    source = cases.tree(tmp_path / "src", getattr(cases, body))
    assert agrees("fold-indptr", source, tmp_path)[0] == code


@pytest.mark.parametrize(("record", "code"), [("FORK_RECORD", 0), ("FORK_RECORD_IN_SEGMENT", 1)])
def test_sparse_mla(record: str, code: int, tmp_path: Path) -> None:
    cases = cases_of("test_sparse_mla")
    path = tmp_path / "src" / cases.GROUP
    path.parent.mkdir(parents=True)
    body = getattr(cases, record) + cases.FORK_CONVERT + cases.FORK_BUILDER
    path.write_text(cases.FORK_HEAD + body)
    assert agrees("sparse-mla", tmp_path / "src", tmp_path)[0] == code


@pytest.mark.parametrize("source", TREES, ids=str)
def test_a_real_tree(source: Path, tmp_path: Path) -> None:
    agrees("sparse-mla", source, tmp_path)
