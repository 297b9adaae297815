"""The demos on a real device: the same errors as on the virtual one, each in its own process."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from capdoctor.engines import embedded
from capdoctor.model import EngineSpec
from tests.engines.embedded.test_demos import CRASHES

pytestmark = pytest.mark.gpu


def _run(model: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = embedded.command(EngineSpec("embedded", model, device="cuda"), folder)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", CRASHES)
def test_a_real_device_breaks_at_the_same_place(name: str, tmp_path: Path) -> None:
    crash = CRASHES[name]
    done = _run(f"demo/{name}", tmp_path)
    assert done.returncode == embedded.EXIT_CRASHED
    first = done.stdout.partition("During handling of the above exception")[0]
    words = "generator" if name == "rng-state" else crash.message
    assert re.search(rf"{crash.error}: .*{re.escape(words)}", first)
    assert f", in {crash.function}" in first


def test_a_real_device_starts_the_clean_demo(tmp_path: Path) -> None:
    assert _run("demo/clean", tmp_path).returncode == 0
