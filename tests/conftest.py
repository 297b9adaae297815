"""Fixtures and skips that every room's tests share."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from capdoctor.engines.environment import COMPILE_CACHES

ROOT = Path(__file__).resolve().parent.parent
VLLM_PYTHON = Path(os.environ.get("CAPDOCTOR_TEST_VLLM_PYTHON", ROOT / ".venv-vllm/bin/python"))


def _has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, and say why."""
    no_gpu = pytest.mark.skip(reason="no GPU on this machine (nvidia-smi not found)")
    no_engine = pytest.mark.skip(reason=f"no vLLM CPU engine at {VLLM_PYTHON}: run `make vllm-env`")
    for item in items:
        if "gpu" in item.keywords and not _has_gpu():
            item.add_marker(no_gpu)
        if "engine" in item.keywords and not VLLM_PYTHON.exists():
            item.add_marker(no_engine)


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python that has the real vLLM CPU engine."""
    return VLLM_PYTHON


@pytest.fixture(autouse=True)
def _own_state_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep runs and caches of tests out of the user's state folder."""
    home = tmp_path_factory.mktemp("xdg")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    for name in COMPILE_CACHES:  # torch sets one itself once something has been compiled
        monkeypatch.delenv(name, raising=False)


def has_torch() -> bool:
    """Say whether the embedded engine can run here."""
    return importlib.util.find_spec("torch") is not None
