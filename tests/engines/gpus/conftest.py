"""Machines with GPUs that are not there: the driver and NVML replaced, the rest real."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capdoctor.engines.gpus import memory

FAKES = Path(__file__).parents[2] / "helpers/fake_nvidia"
Machine = Callable[..., Path]


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a ``libcuda.so.1`` for LD_LIBRARY_PATH."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler on this machine, and the fake driver is a C library")
    folder = tmp_path_factory.mktemp("driver")
    target = folder / "libcuda.so.1"
    line = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", FAKES / "cuda.c", "-o", target]
    subprocess.run(line, check=True)
    return folder


@pytest.fixture
def nvml_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Give a function that makes this a machine whose NVML tells the given GPUs."""

    def says(*gpus: dict[str, Any], **more: Any) -> Path:
        file = tmp_path / "nvml.json"
        file.write_text(json.dumps({"gpus": gpus, **more}))
        monkeypatch.setenv("FAKE_NVML", str(file))
        monkeypatch.setenv("PYTHONPATH", str(FAKES))
        monkeypatch.setattr(memory, "DRIVER_NODES", (file,))
        return file

    return says
