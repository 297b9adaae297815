"""What a checked call costs: a function of 200 operations, eager against captured and checked.

Both run in one process on the same CPU tensors, in turns; the ratio of the best times counts.
Also: what importing the pytest plugin adds to a test run that does not use it.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from capdoctor.capture.checker.run import captured_whole
from capdoctor.capture.device import VirtualDevice

ROOT = Path(__file__).resolve().parent.parent
OPERATIONS, ROUNDS, CALLS = 200, 12, 4
SIZES = {"decode row": (1, 1024), "small batch": (16, 1024), "prefill block": (256, 1024)}
ALLOWED = 20.0


def layer_norm_chain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Do 200 operations of the kinds that a decode step does."""
    y = x
    for _ in range(OPERATIONS // 10):
        mean = y.mean(-1, keepdim=True)  # 1
        centred = y - mean  # 2
        variance = centred.pow(2).mean(-1, keepdim=True)  # 3, 4
        y = centred * torch.rsqrt(variance + 1e-5)  # 5, 6, 7
        y = torch.nn.functional.silu(y)  # 8
        y = y * weight  # 9
        y = y + x  # 10
    return y


def timed(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def measure(shape: tuple[int, int]) -> dict[str, float]:
    x, weight = torch.randn(shape), torch.randn(shape[1])
    eager, checked = [], []
    for _ in range(ROUNDS):
        eager += [timed(lambda: layer_norm_chain(x, weight)) for _ in range(CALLS)]
        with VirtualDevice(stop_at_first=False) as device:
            on_x, on_weight = x.to("cuda"), weight.to("cuda")
            call = functools.partial(layer_norm_chain, on_x, on_weight)
            checked += [timed(lambda call=call: captured_whole(call)) for _ in range(CALLS)]
            assert device.findings == ()
    return {
        "eager_ms": round(min(eager) * 1e3, 3),
        "checked_ms": round(min(checked) * 1e3, 3),
        "ratio": round(min(checked) / min(eager), 1),
    }


def plugin_import() -> float:
    """Give the seconds that importing the plugin adds to an imported pytest, best of five."""
    script = (
        "import pytest, time; begin = time.perf_counter();"
        "import capdoctor.capture.pytest_plugin; print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", script]
    return min(
        float(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
        for _ in range(5)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the answer here too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    answer = {
        "torch": torch.__version__,
        "operations": OPERATIONS,
        "allowed_ratio": ALLOWED,
        "calls": {name: measure(shape) for name, shape in SIZES.items()},
        "plugin_import_s": round(plugin_import(), 4),
    }
    text = json.dumps(answer, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    calls = answer["calls"]
    assert isinstance(calls, dict)
    sys.exit(int(any(call["ratio"] > ALLOWED for call in calls.values())))


if __name__ == "__main__":
    main()
