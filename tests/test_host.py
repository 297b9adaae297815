"""Facts about this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from capdoctor import host
from capdoctor.report.json_text import to_json


def test_this_machine_can_be_described_and_written_down(tmp_path: Path) -> None:
    found = host.describe_host(tmp_path / "not/there/yet")
    assert found.system == "Linux"
    assert found.cpu_cores >= 1
    assert 0 < found.memory_available <= found.memory
    assert found.disk_free is not None
    assert json.loads(json.dumps(to_json(found)))["kernel"] == found.kernel


@pytest.mark.parametrize(
    ("chosen", "given"), [("/var/tmp", "/var/tmp"), ("/" + "x" * 60, "/tmp"), ("/tmp", "/tmp")]
)
def test_temporary_folders_leave_room_for_a_sockets_name(
    monkeypatch: pytest.MonkeyPatch, chosen: str, given: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", chosen)
    parent = host.short_temporary_parent()
    assert parent == Path(given)
    assert len(f"{parent}/capdoctor-12345678") <= host.LONGEST_TMPDIR


def _tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_nvidia_gpus_are_read_from_the_vendors_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tool(tmp_path / "bin", "nvidia-smi", "echo 'NVIDIA H200, 143771, 580.159.04'; echo noise")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert host.nvidia_gpus() == (host.Gpu("nvidia", "NVIDIA H200", 143771, "580.159.04"),)
    _tool(tmp_path / "bin", "nvidia-smi", "echo 'A, [N/A], 1'")
    assert host.nvidia_gpus() == (host.Gpu("nvidia", "A", None, "1"),)


@pytest.mark.parametrize("script", ["exit 9", "kill -9 $$", "echo 'No devices were found'; exit 6"])
def test_a_tool_that_fails_means_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    _tool(tmp_path / "bin", "nvidia-smi", script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert host.nvidia_gpus() == ()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert host.nvidia_gpus() == ()


def test_rocm_is_read_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert host.rocm_version() is None
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info/version").write_text("7.1.0-52\n")
    assert host.rocm_version() == "7.1.0-52"


def test_looking_at_the_machine_imports_neither_torch_nor_an_engine() -> None:
    code = "import sys, capdoctor.host as h; h.describe_host(); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'torch'" not in done.stdout
    assert "'vllm'" not in done.stdout
