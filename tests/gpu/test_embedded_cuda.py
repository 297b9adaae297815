"""The embedded engine on a real GPU: what the virtual device says must be what the driver says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command_line import answer, capdoctor

pytestmark = pytest.mark.gpu

# A virtual memory budget has no counterpart that a test may fill on a shared card.
DEMOS = (
    "sparse-mla",
    "fold-indptr",
    "clean",
    "host-sync",
    "unjoined-stream",
    "uncaptured-dependency",
    "rng-state",
    "default-stream",
    "other-thread",
    "metadata-error",
)


@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_ends_on_the_gpu_as_on_the_virtual_device(demo: str, tmp_path: Path) -> None:
    from importlib.metadata import version

    release = ".".join(version("torch").split(".")[:2])
    real = capdoctor(
        *("repro", "--model", f"demo/{demo}", "--device", "cuda"),
        *("--json", "--out", tmp_path / "real"),
    )
    virtual = capdoctor(
        *("repro", "--model", f"demo/{demo}", "--as-torch", release),
        *("--json", "--out", tmp_path / "virtual"),
    )
    assert real.returncode == virtual.returncode
    assert told(answer(real)) == told(answer(virtual))


def told(outcome: dict[str, object]) -> tuple[object, ...]:
    diagnosis = outcome["diagnosis"]
    if diagnosis is None:
        return (outcome["outcome"],)
    assert isinstance(diagnosis, dict)
    error = diagnosis["error"]
    message = error["message"].split("\n")[0]
    return (outcome["outcome"], diagnosis["class"], diagnosis["stage"], error["code"], message)
