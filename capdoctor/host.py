"""Facts about this machine, found without importing torch or an engine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

from capdoctor.folders import state_folder

_TOOL_SECONDS = 20
# The path of a Unix socket has at most 107 characters, and vLLM adds a UUID of 36 to TMPDIR.
LONGEST_TMPDIR = 70


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as its vendor's tool names it; memory in mebibytes."""

    vendor: str
    name: str
    memory: int | None
    driver: str | None


@dataclass(frozen=True, slots=True)
class Host:
    """This machine; memory and disk in bytes."""

    system: str
    kernel: str
    python: str
    cpu_cores: int
    memory: int
    memory_available: int
    shm_free: int | None
    disk_free: int | None
    cuda_driver: str | None
    rocm: str | None
    gpus: tuple[Gpu, ...]
    in_container: bool


def describe_host(disk_of: Path | None = None) -> Host:
    """Look at this machine; ``disk_of`` is a path whose free space counts."""
    gpus = (*nvidia_gpus(), *amd_gpus())
    memory = psutil.virtual_memory()
    return Host(
        system=platform.system(),
        kernel=platform.release(),
        python=platform.python_version(),
        cpu_cores=os.cpu_count() or 1,
        memory=memory.total,
        memory_available=memory.available,
        shm_free=free_space(Path("/dev/shm")),  # noqa: S108 - where Linux has its shared memory
        disk_free=free_space(disk_of or state_folder()),
        cuda_driver=_nvidia_module_version(),
        rocm=rocm_version(),
        gpus=gpus,
        in_container=in_container(),
    )


def runs_folder() -> Path:
    """Give the folder in which runs lie by default."""
    return state_folder() / "runs"


def short_temporary_parent() -> Path:
    """Give a folder for temporary files whose path leaves room for a socket's name.

    The user's TMPDIR if it is short enough, else ``/tmp``.
    """
    chosen = Path(tempfile.gettempdir())
    fits = len(str(chosen)) + len("/capdoctor-12345678") <= LONGEST_TMPDIR
    return chosen if fits else Path("/tmp")  # noqa: S108 - mkdtemp makes a folder of its own there


def free_space(path: Path) -> int | None:
    """Give the free bytes where ``path`` lies or would lie, None if that cannot be read."""
    for folder in (path, *path.parents):
        if folder.exists():
            try:
                return shutil.disk_usage(folder).free
            except OSError:
                return None
    return None


def in_container() -> bool:
    """Whether this process runs in a container, as far as files tell."""
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()


def nvidia_gpus() -> tuple[Gpu, ...]:
    """Give the GPUs that nvidia-smi lists, none where there is no such tool."""
    query = "--query-gpu=name,memory.total,driver_version"
    text = _output(["nvidia-smi", query, "--format=csv,noheader,nounits"])
    return tuple(_nvidia_gpu(line) for line in text.splitlines() if line.count(",") == 2)  # noqa: PLR2004


def _nvidia_gpu(line: str) -> Gpu:
    name, memory, driver = (part.strip() for part in line.split(","))
    return Gpu("nvidia", name, int(memory) if memory.isdigit() else None, driver)


def amd_gpus() -> tuple[Gpu, ...]:
    """Give the GPUs that the amdgpu kernel driver shows in sysfs; no tool of AMD's is needed."""
    driver = _first_line(Path("/sys/module/amdgpu/version"))
    cards = sorted(Path("/sys/class/drm").glob("card[0-9]*/device"))
    amd = [card for card in cards if _first_line(card / "vendor") == "0x1002"]
    return tuple(_amd_gpu(card, driver) for card in amd)


def _amd_gpu(card: Path, driver: str | None) -> Gpu:
    size = _first_line(card / "mem_info_vram_total")
    memory = int(size) // 2**20 if size and size.isdigit() else None
    name = _first_line(card / "product_name") or f"AMD {_first_line(card / 'device')}"
    return Gpu("amd", name, memory, driver)


def rocm_version() -> str | None:
    """Give the version of ROCm that is installed."""
    home = Path(os.environ.get("ROCM_PATH", "/opt/rocm"))
    return _first_line(home / ".info/version")


def _nvidia_module_version() -> str | None:
    return _first_line(Path("/sys/module/nvidia/version"))


def _first_line(path: Path) -> str | None:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return lines[0].strip() if lines and lines[0].strip() else None


def _output(command: list[str]) -> str:
    """Give what a tool prints, nothing where it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=_TOOL_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
